"""Each adapter calls its library's public API as documented, names its rows, and says exactly why it skips."""
import os
import unittest
from unittest.mock import MagicMock, patch

from stand_ins import FakeBench, modules, tensor

from calibrate.adapters import (deep_ep_adapter, deep_gemm_adapter, fla_adapter, flash_attn_adapter, flash_kda_adapter,
                                moonep_adapter, torch_accumulate_adapter, torch_grouped_mm_adapter, torch_linear_adapter,
                                torch_nccl_adapter, torch_permute_adapter, torch_sdpa_adapter)
from calibrate.adapters.__main__ import parse
from calibrate.adapters.running import run_adapter
from calibrate.adapters.registry import ADAPTERS
from calibrate.adapters.skipping import Skip, WrongResult


def kernels(bench):
    return {(row.section, row.kernel, row.direction) for row in bench.rows}


class FlashKda(unittest.TestCase):
    def test_rows_carry_total_tokens_and_the_documented_arguments_are_passed(self):
        fwd, bench = MagicMock(), FakeBench(quick=False)
        with modules(flash_kda={"fwd": fwd}), patch.object(flash_kda_adapter, "kda_reference"):
            flash_kda_adapter.measure(bench)
        self.assertEqual(kernels(bench), {("kda", "flash_kda", "fwd")})
        packed = next(r for r in bench.rows if r.params == "T=4096;H=8;D=128;nseq=4")
        self.assertEqual(packed.bytes, 41943040)  # as the shipped file has it
        first = fwd.call_args_list[0]
        self.assertEqual(len(first.args), 10)
        self.assertEqual(first.args[0].shape, (1, 80, 2, 128))
        self.assertEqual(first.args[9], -5.0)
        self.assertIsNone(first.kwargs["cu_seqlens"])
        self.assertEqual(fwd.call_args_list[1].kwargs["cu_seqlens"].values, [0, 48, 96])
        self.assertEqual(len(bench.checks), 2)

    def test_a_missing_library_is_skipped_with_the_import_error(self):
        with modules(flash_kda=None), self.assertRaises(Skip) as caught:
            flash_kda_adapter.measure(FakeBench())
        self.assertIn("import flash_kda: ModuleNotFoundError", str(caught.exception))

    def test_a_wrong_result_is_never_timed(self):
        bench, notes = FakeBench(error=0.5), []
        with modules(flash_kda={"fwd": MagicMock()}), patch.object(flash_kda_adapter, "kda_reference"):
            self.assertFalse(run_adapter(flash_kda_adapter, bench, notes.append))
        self.assertEqual(bench.rows, [])
        self.assertTrue(notes[0].startswith("refused flash_kda: "))

    def test_nan_is_a_wrong_result(self):
        with modules(flash_kda={"fwd": MagicMock()}), patch.object(flash_kda_adapter, "kda_reference"):
            with self.assertRaises(WrongResult):
                flash_kda_adapter.measure(FakeBench(error=float("nan")))


class Fla(unittest.TestCase):
    def test_forward_and_backward_with_everything_inside_the_kernel(self):
        chunk_kda, bench = MagicMock(return_value=(tensor((1,)), None)), FakeBench()
        with modules(fla={}, fla__ops={}, fla__ops__kda={"chunk_kda": chunk_kda}), \
                patch("calibrate.adapters.flash_kda_adapter.kda_reference"):
            fla_adapter.measure(bench)
        self.assertEqual(kernels(bench), {("kda", "fla_chunk_kda", "fwd"), ("kda", "fla_chunk_kda", "bwd")})
        options = chunk_kda.call_args.kwargs
        for name in ("safe_gate", "use_gate_in_kernel", "use_qk_l2norm_in_kernel", "use_beta_sigmoid_in_kernel"):
            self.assertIs(options[name], True)
        self.assertEqual(options["lower_bound"], -5.0)
        self.assertEqual(len(bench.checks), 6)  # output and five gradients


class Attention(unittest.TestCase):
    def test_version_3_takes_mla_sizes(self):
        function, bench = MagicMock(return_value=(tensor((1,)), tensor((1,)))), FakeBench()
        with modules(flash_attn_interface={"flash_attn_func": function}):
            flash_attn_adapter.measure(bench)
        self.assertEqual(kernels(bench), {("attn", "flash_attn3", "fwd"), ("attn", "flash_attn3", "bwd")})
        self.assertEqual(bench.rows[0].params, "B=2;H=64;S=4096;dqk=192;dv=128")
        self.assertEqual(bench.rows[0].flops, 687194767360)
        self.assertTrue(function.call_args.kwargs["causal"])

    def test_version_2_is_the_fallback_and_both_reasons_are_given(self):
        bench = FakeBench()
        with modules(flash_attn_interface=None, flash_attn={"flash_attn_func": MagicMock()}):
            flash_attn_adapter.measure(bench)
        self.assertEqual(bench.rows[0].kernel, "flash_attn2")
        with modules(flash_attn_interface=None, flash_attn=None), self.assertRaises(Skip) as caught:
            flash_attn_adapter.measure(bench)
        self.assertIn("flash_attn_interface", str(caught.exception))
        self.assertIn("import flash_attn:", str(caught.exception))

    def test_cudnn_that_refuses_the_head_sizes_is_skipped_with_its_message(self):
        function = MagicMock(side_effect=RuntimeError("No available kernel"))
        attention = {"SDPBackend": MagicMock(), "sdpa_kernel": MagicMock()}
        with modules(torch={}, torch__nn={}, torch__nn__attention=attention,
                     torch__nn__functional={"scaled_dot_product_attention": function}):
            with self.assertRaises(Skip) as caught:
                torch_sdpa_adapter.measure(FakeBench())
        self.assertIn("No available kernel", str(caught.exception))


class Matrices(unittest.TestCase):
    def test_grouped_mm_gets_end_offsets_and_skewed_counts_add_up(self):
        function, bench = MagicMock(), FakeBench(quick=False)
        with modules(torch={}, torch__nn={}, torch__nn__functional={"grouped_mm": function}):
            torch_grouped_mm_adapter.measure(bench)
        self.assertEqual(function.call_args_list[0].kwargs["offs"].values, [48, 48, 64, 128])
        self.assertIn(("grouped", "grouped_mm_up", "wgrad"), kernels(bench))
        self.assertNotIn(("grouped", "grouped_mm_down", "wgrad"), kernels(bench))
        for groups, rows, skew in torch_grouped_mm_adapter.cases(False):
            self.assertEqual(sum(torch_grouped_mm_adapter.counts(groups, rows, skew)), rows)
        row = next(r for r in bench.rows if r.params == "G=4;tokens=512;N=6144;K=3584;skew=uniform")
        self.assertEqual((row.flops, row.bytes), (22548578304, 186122240))  # as the shipped file has it

    def test_a_torch_without_grouped_mm_is_skipped(self):
        with modules(torch={}, torch__nn={}, torch__nn__functional={}), self.assertRaises(Skip) as caught:
            torch_grouped_mm_adapter.measure(FakeBench())
        self.assertEqual(str(caught.exception), "this torch has no grouped_mm")

    def test_deep_gemm_in_both_api_generations(self):
        for name in ("fp8_gemm_nt", "gemm_fp8_fp8_bf16_nt"):
            gemm, bench = MagicMock(), FakeBench()
            casts = {"per_token_cast_to_fp8": MagicMock(), "per_block_cast_to_fp8": MagicMock()}
            with modules(deep_gemm={name: gemm}, deep_gemm__utils=casts):
                deep_gemm_adapter.measure(bench)
            self.assertEqual(kernels(bench), {("gemm", "deep_gemm_fp8", "fwd")})
            self.assertEqual(gemm.call_count, 2)

    def test_linear_rows_cover_both_gradients(self):
        bench = FakeBench()
        torch_linear_adapter.measure(bench)
        self.assertEqual({k[2] for k in kernels(bench)}, {"fwd", "dgrad", "wgrad"})

    def test_accumulating_products_are_timed_beside_writing_ones_of_the_same_shape(self):
        bench = FakeBench(quick=False)
        torch_accumulate_adapter.measure(bench)
        shapes = {name: {r.params for r in bench.rows if r.kernel == name} for name in {r.kernel for r in bench.rows}}
        self.assertEqual(shapes["linear_add"], shapes["linear_write"])
        self.assertEqual(shapes["streams_add"], shapes["streams_write"])
        self.assertEqual((len(shapes["linear_add"]), len(shapes["streams_add"])), (48, 11))  # as in the shipped file

    def test_permutation_rows_are_verified_both_ways(self):
        bench = FakeBench(quick=False)
        torch_permute_adapter.measure(bench)
        self.assertEqual({(r.kernel, r.direction) for r in bench.rows},
                         {(k, d) for k in ("select", "unpermute") for d in ("fwd", "bwd")})
        self.assertEqual(len(bench.checks), len(bench.rows))


class SeveralGpus(unittest.TestCase):
    def test_nccl_rows_use_the_names_and_bytes_of_the_shipped_file(self):
        bench = FakeBench(ranks=2)
        with patch.object(torch_nccl_adapter, "check"):
            torch_nccl_adapter.measure(bench)
        self.assertEqual({r.kernel for r in bench.rows}, {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
        self.assertIn("ranks=2;bytes=16777216", {r.params for r in bench.rows})

    def test_moonep_is_refused_where_multicast_is_off_before_anything_is_called(self):
        buffer = MagicMock()
        with modules(moonep={"Buffer": buffer}), patch.dict(os.environ, {"NCCL_NVLS_ENABLE": "0"}, clear=True):
            with self.assertRaises(Skip) as caught:
                moonep_adapter.measure(FakeBench(ranks=2))
        self.assertEqual(str(caught.exception), "moonep needs NVLink multicast, which NCCL_NVLS_ENABLE=0 switches off")
        buffer.assert_not_called()

    def test_moonep_calls_dispatch_combine_prefetch_and_reduce_as_documented(self):
        buffer = MagicMock()
        plan = object()
        buffer.dispatch.return_value = (tensor((1,)), tensor((1,)), tensor((1,)), plan)
        buffer.combine.return_value = (tensor((1,)), None, None)
        bench = FakeBench(ranks=8)
        bench.normal = lambda shape, *a, **k: routed(shape)
        with modules(moonep={"Buffer": MagicMock(return_value=buffer)}), patch.dict(os.environ, {}, clear=True):
            moonep_adapter.measure(bench)
        self.assertEqual([r.kernel for r in bench.rows],
                         ["moonep_dispatch", "moonep_combine", "moonep_prefetch_weight", "moonep_reduce_grad"])
        self.assertIs(buffer.prefetch_weight.call_args.kwargs["plan"], plan)
        self.assertEqual(buffer.prefetch_weight.call_args.kwargs["gate_prefetch_buffer"].shape, (8, 112, 3072, 3584))
        self.assertEqual(buffer.reduce_grad.call_args.kwargs["local_down_grad"].shape, (112, 3584, 3072))

    def test_deep_ep_round_trip(self):
        buffer = MagicMock()
        buffer.get_dispatch_layout.return_value = (MagicMock(), None, MagicMock(), MagicMock(), None)
        buffer.dispatch.return_value = (tensor((1,)), None, None, None, "handle", None)
        buffer.combine.return_value = (tensor((1,)), None, None)
        bench = FakeBench(ranks=8)
        bench.normal = lambda shape, *a, **k: routed(shape)
        with modules(deep_ep={"Buffer": MagicMock(return_value=buffer)}):
            deep_ep_adapter.measure(bench)
        self.assertEqual([r.kernel for r in bench.rows], ["deep_ep_dispatch", "deep_ep_combine"])
        self.assertEqual(buffer.combine.call_args.args[1], "handle")


def routed(shape):
    fake = tensor(shape)
    fake.sigmoid.return_value.topk.return_value = (MagicMock(), MagicMock())
    return fake


class CommandLine(unittest.TestCase):
    def test_every_adapter_has_a_name_and_a_measure_function(self):
        names = [a.NAME for a in ADAPTERS]
        self.assertEqual(len(set(names)), len(names))
        for adapter in ADAPTERS:
            self.assertTrue(callable(adapter.measure))
            self.assertIsInstance(adapter.MULTI_GPU, bool)

    def test_only_selects_and_an_unknown_name_is_refused(self):
        _, wanted = parse(["--out", "x.csv", "--only", "fla,flash_kda"])
        self.assertEqual(wanted, ["fla", "flash_kda"])
        with self.assertRaises(SystemExit), patch("sys.stderr"):
            parse(["--out", "x.csv", "--only", "nonsense"])

    def test_any_failure_of_a_library_becomes_a_note(self):
        adapter, notes = MagicMock(NAME="x"), []
        adapter.measure.side_effect = OSError("libfoo.so: cannot open\nmore")
        self.assertTrue(run_adapter(adapter, FakeBench(), notes.append))
        self.assertEqual(notes, ["skipped x: OSError: libfoo.so: cannot open"])


if __name__ == "__main__":
    unittest.main()
