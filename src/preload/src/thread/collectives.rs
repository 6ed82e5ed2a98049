//! Collectives: their buffers are offered to receivers as those of sends are, and what the kernel copies inside them is
//! theirs.

use crate::direct::{self, Until};
use crate::mpi::arguments::Arguments;
use crate::mpi::entry_points::EntryPoint;
use crate::mpi::messages;
use crate::mpi::span::Span;
use crate::thread::session::Session;
use copytune_core::mpi::calls::{Binding, Blocks, Data, Role, Source};

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
            if let Blocks::Counted {
                displacements,
                root,
            } = source.blocks
            {
                self.promote_blocks(entry, arguments, (source, displacements, root));
            } else if let Some((Span { start, end }, bytes)) = self.source(entry, arguments, source)
            {
                direct::sending(start, end, bytes, Until::Unknown);
            }
        }
    }

    /// The same for a source whose blocks have a count and a place each.
    fn promote_blocks(
        &mut self,
        entry: &EntryPoint,
        arguments: Arguments,
        (source, displacements, root): (Source, u8, Option<u8>),
    ) -> Option<()> {
        let binding = entry.binding;
        // The arrays of other bindings have other elements, or are described.
        if !matches!(binding, Binding::C | Binding::Fortran) {
            return None;
        }
        let buffer = arguments.word(source.data.buffer);
        if source.may_be_left_out
            && (binding.is_fortran() || self.datatypes.library().is_in_place(buffer, binding)?)
        {
            return None;
        }
        let ranks = self.ranks(entry, arguments, root)?;
        let [counts, displacements] =
            [source.data.count, displacements].map(|at| arguments.word(at) as *const i32);
        if counts.is_null() || displacements.is_null() {
            return None;
        }
        for rank in 0..usize::try_from(ranks).ok()? {
            // SAFETY: each array has an integer for every rank of the communicator (MPI 4.0, 6.5 to 6.8).
            let (count, displacement) = unsafe { (*counts.add(rank), *displacements.add(rank)) };
            if count > 0 {
                let block = (self.datatypes).elements(
                    count.into(),
                    source.data.datatype,
                    binding,
                    arguments,
                );
                let extent = self.datatypes.extent(block);
                let start = i64::from(displacement).wrapping_mul(extent) as usize;
                let reach = self.datatypes.reach(block);
                let Span { start, end } = messages::placed(reach, buffer.wrapping_add(start));
                direct::sending(start, end, block.bytes, Until::Unknown);
            }
        }
        Some(())
    }

    /// How many ranks the call's communicator has; `None`: that is not certain, it has two groups, of which some ranks' buffers mean nothing,
    /// or the calling rank is not the root, whose rank is at that position.
    fn ranks(&self, entry: &EntryPoint, arguments: Arguments, root: Option<u8>) -> Option<i64> {
        let binding = entry.binding;
        let last = entry.call().arguments(binding) - 1 - u8::from(binding.is_fortran());
        let communicator = arguments.word(last);
        let place = self
            .datatypes
            .library()
            .communicator(communicator, binding)?;
        let is_here = |root: u8| messages::integer(arguments, root, binding) == place.rank;
        root.is_none_or(is_here).then_some(place.ranks)
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
        let root = match source.blocks {
            Blocks::AtRoot(root) => Some(root),
            _ => None,
        };
        let ranks = self.ranks(entry, arguments, root)?;
        let message = self.datatypes.message(data, binding, arguments);
        let message = match source.blocks {
            Blocks::One => message,
            _ => message.times(ranks),
        };
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
