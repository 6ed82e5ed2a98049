//! Collectives: their buffers are offered to receivers as those of sends are, and what the kernel copies inside them is
//! theirs.

use crate::direct;
use crate::messages;
use crate::ranges::Span;
use crate::session::Session;
use crate::stubs::Slot;
use crate::wrapper::Arguments;
use copytune_core::calls::{Binding, Blocks, Role, Source};

impl Session {
    /// A collective begins, and receivers want buffers: those out of which the library may send while it lasts may be
    /// promoted. Nobody else writes them: neither the program, on any thread, nor a peer, who learns of them from the
    /// library alone, which is not called yet.
    #[cold]
    #[inline(never)]
    pub(super) fn offer(&mut self, slot: &Slot, arguments: Arguments) {
        let Role::Collective { sources, .. } = slot.call.role else {
            return;
        };
        for &source in sources {
            if let Some((Span { start, end }, bytes)) = self.source(slot, arguments, source) {
                direct::sending(start, end, bytes, false);
            }
        }
    }

    /// Where a source lies, and the bytes of its data. `None` where that is not certain, or there is none in this call.
    fn source(&mut self, slot: &Slot, arguments: Arguments, source: Source) -> Option<(Span, u64)> {
        let binding = slot.binding;
        let buffer = arguments.word(source.data.buffer);
        // Fortran's MPI_IN_PLACE is a variable; what lies around that is other data of the program's.
        let certain = !source.may_be_left_out || is_c(binding) && !is_in_place(buffer);
        if !certain {
            return None;
        }
        let last = slot.call.arguments(binding) - 1 - u8::from(binding.is_fortran());
        let communicator = arguments.word(last);
        let blocks = self
            .datatypes
            .library()
            .communicator(communicator, binding)?;
        let blocks = match source.blocks {
            Blocks::One => 1,
            Blocks::EachRank => blocks.ranks,
            Blocks::AtRoot(position) => {
                let root = messages::integer(arguments, position, binding);
                (root == blocks.rank).then_some(blocks.ranks)?
            }
        };
        let message = self.datatypes.message(source.data, binding, arguments);
        let message = message.times(blocks);
        let reach = self.datatypes.reach(message);
        let span = match binding.has_descriptors() {
            true => messages::described(reach, buffer),
            false => messages::placed(reach, buffer),
        };
        Some((span, message.bytes))
    }
}

fn is_c(binding: Binding) -> bool {
    !binding.is_fortran()
}

/// MPI_IN_PLACE of C: 1 in Open MPI and in the ABI of MPI 5.0, -1 in MPICH (their mpi.h).
fn is_in_place(buffer: usize) -> bool {
    matches!(buffer, 1 | usize::MAX)
}
