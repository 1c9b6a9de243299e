#include "test/object/jobs.hpp"
