/// The pass plugin: every kernel of a module becomes one that runs a SIMD group.
#include <memory>

#include "ActiveLanes.hpp"
#include "AsyncCopies.hpp"
#include "BfloatBits.hpp"
#include "BfloatPairs.hpp"
#include "ByRegister.hpp"
#include "Extracts.hpp"
#include "KeepOrder.hpp"
#include "LaneNumbers.hpp"
#include "LoopElements.hpp"
#include "MaskedMemory.hpp"
#include "Miscompiled.hpp"
#include "PrefetchLoops.hpp"
#include "Prepare.hpp"
#include "Primitives.hpp"
#include "Products.hpp"
#include "StopLoops.hpp"
#include "UnrollPrivate.hpp"
#include "RoundedPairs.hpp"
#include "ValueArguments.hpp"
#include "VectorCopies.hpp"
#include "Widen.hpp"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace PatternMatch;

namespace lanes {
namespace {

CallBase *kernelCall(Function &function) {
  for (BasicBlock &block : function)
    for (Instruction &instruction : block)
      if (primitiveOf(&instruction) == Primitive::kernel) return cast<CallBase>(&instruction);
  return nullptr;
}

/// The user's function among the template arguments of the front end's, which not every demangler knows.
StringRef readableName(const Function &function) {
  const StringRef name = function.getName();
  StringRef own = name.split("XadL_Z").second.ltrim('L');
  unsigned length = 0;
  return own.consumeInteger(10, length) ? name : own.take_front(length);
}

class LanesPass : public PassInfoMixin<LanesPass> {
 public:
  explicit LanesPass(PassBuilder &builder) : builder_(&builder) {}

  static bool isRequired() { return true; }

  PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses) {
    bool hasKernels = false;
    for (Function &function : module) hasKernels |= function.getName() == "sm_kernel";
    if (!hasKernels) return PreservedAnalyses::all();
    AlwaysInlinerPass(/*InsertLifetime=*/false).run(module, analyses);
    // What is in memory is known behind the end of a turn.
    if (Function *turn = module.getFunction("sm_turn")) turn->setOnlyAccessesInaccessibleMemory();
    SmallVector<Function *, 16> kernels;
    for (Function &function : module)
      if (!function.isDeclaration() && kernelCall(function)) kernels.push_back(&function);
    if (inlineRest(kernels)) AlwaysInlinerPass(/*InsertLifetime=*/false).run(module, analyses);
    auto &functions = analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    functions.clear();
    for (Function *kernel : kernels) {
      try {
        widen(*kernel, functions);
      } catch (const Declined &declined) {
        module.getContext().emitError("softmetal: kernel '" + readableName(*kernel) +
                                      "' cannot run as vectors: " + declined.reason);
      }
    }
    dropHelpers(module);
    return PreservedAnalyses::none();
  }

 private:
  /// Marks what kernels call still, and what that calls, whatever their source says of inlining. True where any is.
  static bool inlineRest(ArrayRef<Function *> kernels) {
    SmallVector<Function *, 16> todo(kernels.begin(), kernels.end());
    SmallPtrSet<Function *, 16> marked;
    while (!todo.empty()) {
      for (Instruction &instruction : instructions(*todo.pop_back_val())) {
        auto *call = dyn_cast<CallBase>(&instruction);
        Function *callee = call ? call->getCalledFunction() : nullptr;
        if (!callee || callee->isDeclaration()) continue;
        call->removeFnAttr(Attribute::NoInline);
        if (!marked.insert(callee).second) continue;
        callee->removeFnAttr(Attribute::NoInline);
        callee->removeFnAttr(Attribute::OptimizeNone);
        callee->addFnAttr(Attribute::AlwaysInline);
        todo.push_back(callee);
      }
    }
    return !marked.empty();
  }

  /// Functions that kernels have taken into themselves are of no use but to them.
  static void dropHelpers(Module &module) {
    for (Function &function : make_early_inc_range(module)) {
      if (function.isDeclaration() || none_of(instructions(function), [](const Instruction &instruction) {
            return primitiveOf(&instruction) != Primitive::none;
          }))
        continue;
      function.setComdat(nullptr);
      function.setLinkage(GlobalValue::InternalLinkage);
      if (function.use_empty()) function.eraseFromParent();
    }
  }

  /// Marks a kernel that says that its threads are independent.
  static void markIndependent(Function &kernel) {
    for (Instruction &instruction : make_early_inc_range(instructions(kernel))) {
      if (primitiveOf(&instruction) != Primitive::independent) continue;
      kernel.addFnAttr(independent);
      instruction.eraseFromParent();
    }
  }

  void widen(Function &kernel, FunctionAnalysisManager &analyses) {
    markIndependent(kernel);
    replaceArguments(kernel);
    copyAsVectors(kernel, /*isPrivateToo=*/false);
    simplify(kernel, analyses, *builder_);
    joinProducts(kernel, analyses, *builder_);
    analyses.clear(kernel, kernel.getName());
    CallBase *begin = kernelCall(kernel);
    if (!begin || begin->getParent() != &kernel.getEntryBlock()) throw Declined{"no beginning"};
    Value *isRegular = begin->getArgOperand(1);
    Function *regular = version(kernel, analyses, true);
    Function *general = match(isRegular, m_One()) ? nullptr : version(kernel, analyses, false);
    // What the kernel was becomes the choice between the two.
    BasicBlock *block = begin->getParent();
    block->splitBasicBlock(begin->getIterator());
    block->getTerminator()->eraseFromParent();
    SmallVector<Value *, 2> arguments;
    for (Argument &argument : kernel.args()) arguments.push_back(&argument);
    const auto way = [&](Function *version, StringRef name) {
      BasicBlock *result = BasicBlock::Create(kernel.getContext(), name, &kernel);
      IRBuilder<> builder(result);
      builder.CreateCall(version, arguments);
      builder.CreateRetVoid();
      return result;
    };
    IRBuilder<> end(block);
    BasicBlock *regularWay = way(regular, "regular");
    if (general)
      end.CreateCondBr(isRegular, regularWay, way(general, "general"));
    else
      end.CreateBr(regularWay);
    removeUnreachableBlocks(kernel);
  }

  Function *version(Function &kernel, FunctionAnalysisManager &analyses, bool isRegular) {
    ValueToValueMapTy map;
    Function *source = CloneFunction(&kernel, map);
    Function *target = nullptr;
    try {
      prepare(*source, analyses, *builder_, isRegular);
      Blocks blocks(*source);
      const Shapes shapes(*source, blocks, isRegular);
      target = Function::Create(kernel.getFunctionType(), GlobalValue::InternalLinkage,
                                kernel.getName() + (isRegular ? ".regular" : ".general"), kernel.getParent());
      target->copyAttributesFrom(&kernel);
      target->setLinkage(GlobalValue::InternalLinkage);
      target->setComdat(nullptr);
      target->removeFnAttr(Attribute::Convergent);
      target->removeFnAttr(Attribute::AlwaysInline);
      target->addFnAttr(Attribute::NoInline);
      if (!isRegular) target->addFnAttr(Attribute::MinSize), target->addFnAttr(Attribute::OptimizeForSize);
      const uint64_t registerBits = analyses.getResult<TargetIRAnalysis>(kernel)
                                        .getRegisterBitWidth(TargetTransformInfo::RGK_FixedWidthVector)
                                        .getFixedValue();
      Widener(*source, *target, blocks, shapes, registerBits).run();
      std::string message;
      raw_string_ostream stream(message);
      if (verifyFunction(*target, &stream)) throw Declined{"made wrong code: " + stream.str()};
    } catch (const Declined &) {
      if (target) {
        target->deleteBody();
        target->eraseFromParent();
      }
      analyses.clear(*source, source->getName());
      source->eraseFromParent();
      throw;
    }
    analyses.clear(*source, source->getName());
    source->eraseFromParent();
    return target;
  }

  PassBuilder *builder_;
};

void registerPasses(PassBuilder &builder) {
  registerUnrollPrivate(builder);
  builder.registerPipelineStartEPCallback([&builder](ModulePassManager &passes, OptimizationLevel) {
    passes.addPass(LanesPass(builder));
    passes.addPass(createModuleToFunctionPassAdaptor(CopyVectors()));
  });
  builder.registerOptimizerEarlyEPCallback(
      [&builder](ModulePassManager &passes, OptimizationLevel) { passes.addPass(ActiveLanes(builder)); });
  builder.registerVectorizerStartEPCallback([](FunctionPassManager &passes, OptimizationLevel) {
    passes.addPass(LoopElements());
    passes.addPass(RoundToBfloat());
    passes.addPass(AsyncCopies());
  });
  builder.registerOptimizerLastEPCallback([](ModulePassManager &passes, OptimizationLevel) {
    passes.addPass(createModuleToFunctionPassAdaptor(KeepOrder()));
    passes.addPass(createModuleToFunctionPassAdaptor(RoundBfloatPairs()));
    passes.addPass(createModuleToFunctionPassAdaptor(RoundPairs()));
    passes.addPass(createModuleToFunctionPassAdaptor(ByRegister()));
    passes.addPass(createModuleToFunctionPassAdaptor(AvoidMiscompiled()));
    passes.addPass(createModuleToFunctionPassAdaptor(LaneNumbers()));
    passes.addPass(CompactMasks());
    passes.addPass(KeepExtracts());
    passes.addPass(HideBfloatBits());
    passes.addPass(createModuleToFunctionPassAdaptor(AccessBfloatBits()));
    passes.addPass(createModuleToFunctionPassAdaptor(PrefetchLoops()));
    passes.addPass(createModuleToFunctionPassAdaptor(AwaitCopies()));
    passes.addPass(ValueArguments());
    passes.addPass(StopLoops());
  });
  builder.registerPipelineParsingCallback(
      [&builder](StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
        if (name != "softmetal-lanes") return false;
        passes.addPass(LanesPass(builder));
        return true;
      });
}

}  // namespace
}  // namespace lanes

extern "C" __attribute__((weak, visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "softmetal-lanes", "1", lanes::registerPasses};
}
