"""The pre-pass of KDA context parallelism (fla.ops.cp.chunk_delta_h): it reduces a slice of one document to the state
reached from zero and the slice's transition, forward, and to their gradients' counterparts, backward.

Rows: kda,fla_kcp_prepass,fwd|bwd. One block of threads per 64 columns of (state, transition) and head walks all chunks.
The double-precision reference walks the same chunks: S <- decay S + k^T (u - w S), M <- (decay - k^T w) M, and in
reverse order dS <- decay dS + scale q^T do - w^T (dv + k dS), dM <- (decay - w^T k) dM.
Source: the library's fla/ops/cp/README; k3-facts section 2.6.
"""
from .csv_rows import KernelId, join_params
from .skipping import require, require_attribute

NAME = "fla_kcp"
MULTI_GPU = False
CHUNK, DIM, SCALE = 64, 128, 128**-0.5


class Slice:
    """What the core's first kernels hand to the pre-pass, drawn at random but contracting, as trained layers are."""

    def __init__(self, bench, tokens, heads):
        shape = (1, tokens, heads, DIM)
        self.tokens, self.heads = tokens, heads
        self.q, self.k, self.w = (bench.normal(shape, "bf16", DIM**-0.5) for _ in range(3))
        self.u, self.do, self.dv = (bench.normal(shape) for _ in range(3))
        self.gk = bench.normal(shape, "fp32", 0.3, -1.5)
        self.out = bench.empty((heads, DIM, 2 * DIM), "fp32")
        self.cu_seqlens = bench.integers([0, tokens])

    def _common(self):
        return dict(w=self.w, g=None, gk=self.gk, cu_seqlens=self.cu_seqlens, T=self.tokens, H=self.heads,
                    HV=self.heads, K=DIM, V=DIM, BT=CHUNK, BK1=DIM, BLOCK_SIZE=64)

    def forward(self, module):
        grid = (2 * DIM // 64, self.heads)
        module.pre_process_fwd_kernel_merged[grid](k=self.k, v=self.u, u=self.u, bg=None, hm=self.out,
                                                   MULTI_SEQS=False, **self._common())

    def backward(self, module):
        grid = (2 * DIM // 64, self.heads)
        module.pre_process_bwd_kernel_merged[grid](q=self.q, k=self.k, do=self.do, dv=self.dv, dhm=self.out,
                                                   scale=SCALE, USE_BG=False, **self._common())

    def reference(self, torch, forward):
        by_chunk = lambda x: x[0].double().view(-1, CHUNK, self.heads, DIM).transpose(1, 2)  # noqa: E731
        q, k, w, u, do, dv, gk = (by_chunk(x) for x in (self.q, self.k, self.w, self.u, self.do, self.dv, self.gk))
        state = torch.zeros(self.heads, DIM, DIM, dtype=torch.float64, device=q.device)
        transition = torch.eye(DIM, dtype=torch.float64, device=q.device).expand(self.heads, DIM, DIM)
        order = range(q.shape[0]) if forward else reversed(range(q.shape[0]))
        for c in order:
            decay = torch.diag_embed(torch.exp2(gk[c][:, -1]))
            if forward:
                state = decay @ state + k[c].mT @ (u[c] - w[c] @ state)
                transition = (decay - k[c].mT @ w[c]) @ transition
            else:
                state = decay @ state + SCALE * q[c].mT @ do[c] - w[c].mT @ (dv[c] + k[c] @ state)
                transition = (decay - w[c].mT @ k[c]) @ transition
        return torch.cat((state, transition), dim=2)


def measure(bench):
    module = require("fla.ops.cp.chunk_delta_h")
    for name in ("pre_process_fwd_kernel_merged", "pre_process_bwd_kernel_merged"):
        require_attribute(module, name)
    for heads in (96,) if bench.quick else (4, 8, 16, 32, 48, 64, 96):
        warm = Slice(bench, 8192, heads)  # the autotuner chooses at the first call, whatever its length: a long one
        warm.forward(module)
        warm.backward(module)
        small = Slice(bench, 2 * CHUNK, heads)
        for direction, run in (("fwd", small.forward), ("bwd", small.backward)):
            run(module)
            want = small.reference(bench.torch, direction == "fwd")
            bench.verify(f"kcp pre-pass {direction} H={heads}", bench.relative_error(small.out, want), 2e-2)
        for tokens in (8192,) if bench.quick else (2048, 8192, 32768):
            x = Slice(bench, tokens, heads)
            for direction, run in (("fwd", x.forward), ("bwd", x.backward)):
                row = KernelId("kda", "fla_kcp_prepass", direction, "bf16",
                               join_params(T=tokens, H=heads, D=DIM, nseq=1))
                bench.time(row, lambda run=run: run(module))
