// Functions with planted first instructions, all of type long(long). Those named good_* can be redirected,
// those named bad_* must be refused. good_at_N and good_push_at_N lie N bytes behind the start of a cache
// line.
extern "C" __attribute__((visibility("default"))) long also_in_test() {
  return 1;
}

asm(R"(
  .macro plant name, offset=0
    .p2align 6
    .if \offset
    .skip \offset, 0xcc
    .endif
    .globl \name
    .type \name, @function
    \name:
  .endm
  .macro end name
    .size \name, . - \name
  .endm

  .data
  .globl planted_data
  .type planted_data, @object
  .size planted_data, 8
  planted_data: .quad 0
  value: .quad 1000, 2000
  pointer: .quad helper

  .text
  .p2align 4
  helper:
    mov $77, %eax
    ret
  tail:
    lea 500(%rax,%rdi), %rax
    ret

  plant good_lea
    lea value(%rip), %rax
    mov (%rax), %rax
    add %rdi, %rax
    ret
  end good_lea

  plant good_mov
    mov value(%rip), %rax
    add %rdi, %rax
    ret
  end good_mov

  # The displacement is not at the instruction's end.
  plant good_cmp
    cmpq $1000, value(%rip)
    sete %al
    movzbl %al, %eax
    add %rdi, %rax
    ret
  end good_cmp

  plant good_cmp_imm8
    cmpb $0x7f, value(%rip)
    setl %al
    movzbl %al, %eax
    lea 3(%rax,%rdi), %rax
    ret
  end good_cmp_imm8

  plant good_sse
    movdqu value(%rip), %xmm0
    movq %xmm0, %rax
    add %rdi, %rax
    ret
  end good_sse

  plant good_push_lea
    push %rbp
    lea value+8(%rip), %rax
    mov (%rax), %rax
    add %rdi, %rax
    pop %rbp
    ret
  end good_push_lea

  plant good_call
    call helper
    add %rdi, %rax
    ret
  end good_call

  plant good_push_call
    push %rbx
    mov %edi, %ebx
    call helper
    add %rbx, %rax
    pop %rbx
    ret
  end good_push_call

  plant good_call_memory
    call *pointer(%rip)
    add %rdi, %rax
    ret
  end good_call_memory

  plant good_call_register
    push %rbx
    lea helper(%rip), %rbx
    call *%rbx
    pop %rbx
    add %rdi, %rax
    ret
  end good_call_register

  plant good_branch8
    test %rdi, %rdi
    jne 1f
    mov $-1, %rax
    ret
  1:
    lea 10(%rdi), %rax
    ret
  end good_branch8

  plant good_branch32
    test %edi, %edi
    .byte 0x0f, 0x85
    .long 1f - . - 4
    mov $-1, %rax
    ret
  1:
    lea 20(%rdi), %rax
    ret
  end good_branch32

  plant good_jump8
    mov %rdi, %rax
    .byte 0xeb, 1f - . - 1
    int3
  1:
    add $30, %rax
    ret
  end good_jump8

  plant good_tail_call
    xor %eax, %eax
    .byte 0xe9
    .long tail - . - 4
  end good_tail_call

  # Behind endbr64 the jump does not fit one aligned word; behind the pushes it does.
  plant good_endbr
    endbr64
    lea 40(%rdi), %rax
    nop
    ret
  end good_endbr

  plant good_endbr_pushes
    endbr64
    push %r15
    push %r14
    push %rbx
    mov %rdi, %rbx
    lea 50(%rbx), %rax
    pop %rbx
    pop %r14
    pop %r15
    ret
  end good_endbr_pushes

  plant good_pushes
    push %rbx
    push %rbp
    push %r12
    push %r13
    mov %rdi, %rbx
    lea 60(%rbx), %rax
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
  end good_pushes

  plant good_recursion
    push %rbx
    mov %rdi, %rbx
    test %rdi, %rdi
    je 1f
    lea -1(%rdi), %rdi
    call good_recursion_itself
    lea 1(%rax), %rax
    pop %rbx
    ret
  1:
    xor %eax, %eax
    pop %rbx
    ret
  .set good_recursion_itself, good_recursion
  end good_recursion

  # As NCCL does: a weak and a strong name of one function.
  plant good_named
    lea 70(%rdi), %rax
    nop
    ret
  end good_named
  .weak weak_named
  .type weak_named, @function
  .set weak_named, good_named
  .size weak_named, . - good_named

  # On a page of its own.
  .p2align 12
  plant good_far
    lea 80(%rdi), %rax
    nop
    ret
  end good_far

  # Empty functions, as the loader's debugger notification is one. Padding as compilers write it.
  plant empty_return
    ret
    .byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    .byte 0x0f, 0x1f, 0x40, 0
  end empty_return

  plant empty_endbr
    endbr64
    ret
    .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x90
  end empty_endbr

  plant empty_repz
    .byte 0xf3, 0xc3
    int3
    int3
    int3
    nop
  end empty_repz

  plant unempty_code_follows
    ret
    nop
    push %rbx
    pop %rbx
    ret
  end unempty_code_follows

  plant unempty_no_room, 12
    ret
    nop
    nop
    nop
    nop
    nop
  end unempty_no_room

  plant unempty_does_something
    inc %rdi
    ret
    nop
    nop
    nop
  end unempty_does_something

  plant bad_branch_back
    xor %eax, %eax
  1:
    add $1, %eax
    dec %rdi
    jne 1b
    ret
  end bad_branch_back

  # The branch is far behind the first instructions and of a form that cannot be moved.
  plant bad_branch_back_short_only
    xor %eax, %eax
  1:
    add $1, %eax
    nop
    nop
    jrcxz 1b
    ret
  end bad_branch_back_short_only

  plant bad_loop_to_entry
  1:
    lea 0x1000(%rax), %rax
    dec %rdi
    jne 1b
    ret
  end bad_loop_to_entry

  plant bad_short
    xor %eax, %eax
    nop
  end bad_short
    nop
    ret

  plant bad_return
    mov %rdi, %rax
    ret
    nop
    nop
  end bad_return

  plant bad_jump8
    .byte 0xeb, 4
    nop
    nop
    nop
    nop
    mov %rdi, %rax
    ret
  end bad_jump8

  plant bad_jump32
    .byte 0xe9
    .long tail - . - 4
    nop
  end bad_jump32

  plant bad_jump_memory
    jmp *pointer(%rip)
  end bad_jump_memory

  plant bad_long_jump
    movabs $0x1122334455667788, %rax
    jmp *%rax
  end bad_long_jump

  plant bad_early_jump
    xor %eax, %eax
    .byte 0xeb, 2
    nop
    nop
    ret
  end bad_early_jump

  plant bad_breakpoint
    int3
    mov %rdi, %rax
    nop
    nop
    ret
  end bad_breakpoint

  plant bad_breakpoint_later
    nop
    int3
    mov %rdi, %rax
    ret
  end bad_breakpoint_later

  plant bad_jrcxz
    nop
    jrcxz 1f
    nop
    nop
    nop
  1:
    mov %rdi, %rax
    ret
  end bad_jrcxz

  plant bad_loop
    nop
    loop 1f
    nop
    nop
    nop
  1:
    mov %rdi, %rax
    ret
  end bad_loop

  plant bad_own_address
    call 1f
  1:
    pop %rax
    ret
  end bad_own_address

  plant bad_bytes
    .byte 0x06, 0x06, 0x06, 0x06, 0x06, 0x06
    ret
  end bad_bytes

  plant bad_bytes_later
    lea 0x1000(%rdi), %rax
    ret
    .byte 0x06
  end bad_bytes_later

  plant bad_no_size
    lea 0x1000(%rdi), %rax
    ret

  # Not a push, and its first two bytes lie in two cache lines.
  plant bad_two_lines, 63
    lea 0x1000(%rdi), %rax
    ret
  end bad_two_lines

  .p2align 4
  .globl bad_ifunc
  .type bad_ifunc, @gnu_indirect_function
  bad_ifunc:
    lea tail(%rip), %rax
    nop
    ret
  .size bad_ifunc, . - bad_ifunc

  # One instruction covers all that the jump overwrites: no thread can be stopped within it.
  .altmacro
  .macro plant_at offset
    plant good_at_\offset, \offset
      lea 0x1000(%rdi), %rax
      ret
    end good_at_\offset
    plant good_push_at_\offset, \offset
      push %rbx
      lea 0x1000(%rdi), %rax
      pop %rbx
      ret
    end good_push_at_\offset
  .endm
  .set offset, 0
  .rept 64
    plant_at %offset
    .set offset, offset + 1
  .endr
  .noaltmacro
)");
