"""All adapters in the order in which they run: one explicit list, one module per library."""
from . import (deep_ep_adapter, deep_gemm_adapter, fla_adapter, fla_cp_adapter, fla_kcp_adapter,
               flash_attn_adapter, flash_kda_adapter, moonep_adapter, torch_accumulate_adapter, torch_grouped_mm_adapter,
               torch_linear_adapter, torch_nccl_adapter, torch_permute_adapter, torch_sdpa_adapter)

ADAPTERS = [flash_kda_adapter, torch_sdpa_adapter, flash_attn_adapter, torch_grouped_mm_adapter,
            torch_linear_adapter, torch_accumulate_adapter, torch_permute_adapter, deep_gemm_adapter, fla_adapter,
            fla_kcp_adapter, torch_nccl_adapter, fla_cp_adapter, moonep_adapter, deep_ep_adapter]
