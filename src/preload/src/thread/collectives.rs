//! Collectives: their buffers are offered to receivers as those of sends are, and what the kernel copies inside them is
//! theirs.

use crate::direct::{self, Until};
use crate::mpi::arguments::Arguments;
use crate::mpi::entry_points::EntryPoint;
use crate::mpi::messages;
use crate::mpi::span::Span;
use crate::thread::session::Session;
use copytune_core::mpi::calls::{Blocks, Data, Role, Source};

impl Session {
    /// A collective begins: are buffers wanted? What threads show of blocking sends is none of its messages.
    pub(super) fn promote_sources_on_demand(&mut self, entry: &EntryPoint, arguments: Arguments) {
        direct::hide_others(0, usize::MAX);
        if direct::has_requests() {
            self.promote_sources(entry, arguments);
        }
    }

    /// A collective begins, and receivers want buffers: those out of which the library may send while it lasts may be
    /// promoted. Nobody else writes them: neither the program, on any thread, nor a peer, who learns of them from the
    /// library alone, which is not called yet.
    #[cold]
    #[inline(never)]
    fn promote_sources(&mut self, entry: &EntryPoint, arguments: Arguments) {
        let Role::Collective { sources, .. } = entry.call().role else {
            return;
        };
        for &source in sources {
            if let Some((Span { start, end }, bytes)) = self.source(entry, arguments, source) {
                direct::sending(start, end, bytes, Until::Unknown);
            }
        }
    }

    /// Where a source lies, and the bytes of its data. `None` where that is not certain, or there is none in this call.
    fn source(
        &mut self,
        entry: &EntryPoint,
        arguments: Arguments,
        source: Source,
    ) -> Option<(Span, u64)> {
        let binding = entry.binding;
        let buffer = arguments.word(source.data.buffer);
        let mut data = source.data;
        if source.may_be_left_out {
            if self.datatypes.library().is_in_place(buffer, binding)? {
                return None;
            }
            if binding.is_fortran() {
                // What Fortran's MPI_IN_PLACE is, is less certain than C's: a datatype that means nothing is never asked about.
                data = same_as_received(entry, arguments, data)?;
            }
        }
        let last = entry.call().arguments(binding) - 1 - u8::from(binding.is_fortran());
        let communicator = arguments.word(last);
        let place = self
            .datatypes
            .library()
            .communicator(communicator, binding)?;
        let blocks = match source.blocks {
            Blocks::One => 1,
            Blocks::EachRank => place.ranks,
            Blocks::AtRoot(position) => {
                let root = messages::integer(arguments, position, binding);
                (root == place.rank).then_some(place.ranks)?
            }
        };
        let message = self.datatypes.message(data, binding, arguments);
        let message = message.times(blocks);
        let reach = self.datatypes.reach(message);
        let span = match binding.has_descriptors() {
            true => messages::described(reach, buffer),
            false => messages::placed(reach, buffer),
        };
        Some((span, message.bytes))
    }
}

/// The arguments of the call's message, which always mean something, where `data` has the same count and datatype.
fn same_as_received(entry: &EntryPoint, arguments: Arguments, data: Data) -> Option<Data> {
    let Role::Collective {
        message: Some(message),
        ..
    } = entry.call().role
    else {
        return None;
    };
    let integer = |position| messages::integer(arguments, position, entry.binding);
    let same = |a, b| integer(a) == integer(b);
    (same(data.count, message.count) && same(data.datatype, message.datatype)).then_some(Data {
        buffer: data.buffer,
        ..message
    })
}
