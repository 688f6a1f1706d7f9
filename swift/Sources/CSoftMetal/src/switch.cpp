#include "switch.hpp"

// Continues by jumps: a `ret` to where no call came from is foretold wrongly, and those after it as well, whereas the
// fibres of a kernel have the same calls behind them.

#if defined(__x86_64__)
asm(R"(
.text
.globl softmetal_switch
.hidden softmetal_switch
.type softmetal_switch,@function
softmetal_switch:
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  leaq 1f(%rip), %rax
  pushq %rax
  pushq %rbp
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %rbp
  popq %rax
  jmpq *%rax
1:
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  ret
.size softmetal_switch, .-softmetal_switch
.globl softmetal_jump
.hidden softmetal_jump
.type softmetal_jump,@function
softmetal_jump:
  movq %rdi, %rsp
  popq %rbp
  popq %rax
  jmpq *%rax
.size softmetal_jump, .-softmetal_jump
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl softmetal_switch
.hidden softmetal_switch
.type softmetal_switch,@function
softmetal_switch:
  sub sp, sp, #160
  stp d8, d9, [sp]
  stp d10, d11, [sp, #16]
  stp d12, d13, [sp, #32]
  stp d14, d15, [sp, #48]
  stp x19, x20, [sp, #64]
  stp x21, x22, [sp, #80]
  stp x23, x24, [sp, #96]
  stp x25, x26, [sp, #112]
  stp x27, x28, [sp, #128]
  str x30, [sp, #144]
  adr x9, 1f
  stp x29, x9, [sp, #-16]!
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x29, x9, [sp], #16
  br x9
1:
  ldp d8, d9, [sp]
  ldp d10, d11, [sp, #16]
  ldp d12, d13, [sp, #32]
  ldp d14, d15, [sp, #48]
  ldp x19, x20, [sp, #64]
  ldp x21, x22, [sp, #80]
  ldp x23, x24, [sp, #96]
  ldp x25, x26, [sp, #112]
  ldp x27, x28, [sp, #128]
  ldr x30, [sp, #144]
  add sp, sp, #160
  ret
.size softmetal_switch, .-softmetal_switch
.globl softmetal_jump
.hidden softmetal_jump
.type softmetal_jump,@function
softmetal_jump:
  mov sp, x0
  ldp x29, x9, [sp], #16
  br x9
.size softmetal_jump, .-softmetal_jump
)");
#endif
