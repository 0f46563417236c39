"""Page allocation for devices that cannot launch upstream's Triton kernels."""

from __future__ import annotations

from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator
from torch import Tensor

from kunlun_adapt.kernels.kv_cache.pages import decode_slots, extend_slots, pages_of


class KunlunPagedTokenToKVPoolAllocator(PagedTokenToKVPoolAllocator):
    """Upstream's paged allocator with its two Triton launches replaced.

    Free lists, frees and grouping stay upstream's. The number of pages that a call takes
    comes from the host copies of the lengths, so no call waits for the device.
    """

    free_pages: Tensor

    def alloc_extend(
        self,
        prefix_lens: Tensor,
        prefix_lens_cpu: Tensor,
        seq_lens: Tensor,
        seq_lens_cpu: Tensor,
        last_loc: Tensor,
        extend_num_tokens: int,
        num_new_pages: int | None = None,
    ) -> Tensor | None:
        """Slots for ``extend_num_tokens`` prompt tokens, or None when pages run out."""
        if num_new_pages is None:
            before = pages_of(prefix_lens_cpu, self.page_size)
            num_new_pages = int((pages_of(seq_lens_cpu, self.page_size) - before).sum())
        if not self._reserve(num_new_pages):
            return None
        slots = extend_slots(
            prefix_lens.long(),
            seq_lens.long(),
            last_loc.long(),
            self.free_pages,
            self.page_size,
            extend_num_tokens,
        )
        self.free_pages = self.free_pages[num_new_pages:]
        return slots

    def alloc_decode(
        self, seq_lens: Tensor, seq_lens_cpu: Tensor, last_loc: Tensor
    ) -> Tensor | None:
        """One slot per request, or None when pages run out."""
        num_new_pages = int(((seq_lens_cpu - 1) % self.page_size == 0).sum())
        if not self._reserve(num_new_pages):
            return None
        slots = decode_slots(seq_lens.long(), last_loc.long(), self.free_pages, self.page_size)
        self.free_pages = self.free_pages[num_new_pages:]
        return slots

    def _reserve(self, pages: int) -> bool:
        if pages > len(self.free_pages):
            # Freed pages may wait unsorted beside the free list.
            self.merge_and_sort_free()
        return bool(pages <= len(self.free_pages))
