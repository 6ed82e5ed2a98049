//! Collectives: their buffers are offered to receivers, and shown, as those of sends are, and what the kernel copies inside them is
//! theirs.

use crate::direct::{self, Until};
use crate::mpi::arguments::Arguments;
use crate::mpi::entry_points::EntryPoint;
use crate::mpi::messages;
use crate::mpi::span::Span;
use crate::thread::session::Session;
use crate::thread::sessions;
use copytune_core::mpi::calls::{Binding, Blocks, Data, Role, Source};

/// The most ranks whose blocks of one collective are shown: each takes some 0.1 µs.
const MOST_SHOWN: usize = 16;

impl Session {
    /// A collective begins: are buffers wanted, or has one a notice? What threads show of blocking sends is none of its messages. True: one
    /// is shown, until [`Session::hide`].
    pub(super) fn offer_sources_on_demand(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
    ) -> bool {
        self.hide();
        direct::hide_others(0, usize::MAX);
        let asks = direct::has_requests();
        if asks || direct::may_show(u64::MAX) {
            self.offer_sources(entry, arguments, asks);
        }
        self.shown.is_some() || self.ending.is_some()
    }

    /// A collective begins, and receivers want buffers, or one has a notice: those out of which the library may send while it lasts may
    /// be promoted. Nobody else writes them: neither the program, on any thread, nor a peer, who learns of them from the
    /// library alone, which is not called yet. What is received into nobody may be shown of.
    #[cold]
    #[inline(never)]
    fn offer_sources(&mut self, entry: &'static EntryPoint, arguments: Arguments, asks: bool) {
        let Role::Collective { sources, .. } = entry.call().role else {
            return;
        };
        for &source in sources {
            match source.blocks {
                Blocks::Counted {
                    displacements,
                    root,
                } => {
                    self.offer_counted(entry, arguments, (source, displacements, root), asks);
                }
                Blocks::One | Blocks::OneOfRoot(_) => {
                    self.offer_message(entry, arguments, source, asks);
                }
                Blocks::EachRank | Blocks::AtRoot(_) => {
                    self.offer_blocks(entry, arguments, source, asks);
                }
            }
        }
        if direct::lasts() {
            self.ranges.note_lasting(true);
            self.ending = Some(entry);
        }
    }

    /// A source that is one message, which is shown if nobody writes it while the call lasts. No call has two of those.
    fn offer_message(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
        source: Source,
        asks: bool,
    ) {
        let stays = match source.blocks {
            Blocks::OneOfRoot(root) => self.ranks(entry, arguments, Some(root)).is_some(),
            _ => source.may_be_left_out,
        };
        let until = match stays {
            true => Until::Return,
            false => Until::Unknown,
        };
        if (asks || stays)
            && let Some((Span { start, end }, bytes)) = self.source(entry, arguments, source)
            && is_wanted(bytes, asks)
            && let Some(notice) = direct::sending(start, end, bytes, until)
        {
            self.shown = Some((notice, entry));
        }
    }

    /// A source that has a message for each rank, one beside the other: it is offered as a whole, and each of them is shown if nobody
    /// writes it while the call lasts.
    fn offer_blocks(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
        source: Source,
        asks: bool,
    ) -> Option<()> {
        let (stays, root) = match source.blocks {
            Blocks::AtRoot(root) => (true, Some(root)),
            _ => (source.may_be_left_out, None),
        };
        if !asks && !stays {
            return None;
        }
        let (Span { start, end }, bytes) = self.source(entry, arguments, source)?;
        let ranks = usize::try_from(self.ranks(entry, arguments, root)?).ok()?;
        let all = end.checked_sub(start)?;
        let until = until_return(stays && ranks <= MOST_SHOWN && all as u64 == bytes);
        if asks && direct::may_meet(bytes) {
            let whole = match until {
                Until::ReturnOfSeveral => Until::Blocks,
                _ => Until::Unknown,
            };
            direct::sending(start, end, bytes, whole);
        }
        if until != Until::ReturnOfSeveral {
            return None;
        }
        let block = all.checked_div(ranks)?;
        for start in (0..ranks).map(|rank| start + rank * block) {
            if is_wanted(block as u64, asks) {
                direct::sending(start, start + block, block as u64, until);
            }
        }
        Some(())
    }

    /// A source whose messages have a count and a place each: those of a send buffer are shown.
    fn offer_counted(
        &mut self,
        entry: &'static EntryPoint,
        arguments: Arguments,
        (source, displacements, root): (Source, u8, Option<u8>),
        asks: bool,
    ) -> Option<()> {
        let binding = entry.binding;
        let stays = source.may_be_left_out || root.is_some();
        // The arrays of other bindings have other elements, or are described.
        if !matches!(binding, Binding::C | Binding::Fortran) || !(asks || stays) {
            return None;
        }
        let buffer = arguments.word(source.data.buffer);
        if source.may_be_left_out
            && (binding.is_fortran() || self.datatypes.library().is_in_place(buffer, binding)?)
        {
            return None;
        }
        let ranks = usize::try_from(self.ranks(entry, arguments, root)?).ok()?;
        let [counts, displacements] =
            [source.data.count, displacements].map(|at| arguments.word(at) as *const i32);
        if counts.is_null() || displacements.is_null() {
            return None;
        }
        let until = until_return(stays && ranks <= MOST_SHOWN);
        if !asks && until == Until::Unknown {
            return None;
        }
        for rank in 0..ranks {
            // SAFETY: each array has an integer for every rank of the communicator (MPI 4.0, 6.5 to 6.8).
            let (count, displacement) = unsafe { (*counts.add(rank), *displacements.add(rank)) };
            if count <= 0 {
                continue;
            }
            let datatype = source.data.datatype;
            let block = (self.datatypes).elements(count.into(), datatype, binding, arguments);
            if is_wanted(block.bytes, asks) {
                let extent = self.datatypes.extent(block);
                let start = i64::from(displacement).wrapping_mul(extent) as usize;
                let reach = self.datatypes.reach(block);
                let Span { start, end } = messages::placed(reach, buffer.wrapping_add(start));
                direct::sending(start, end, block.bytes, until);
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
            Blocks::One | Blocks::OneOfRoot(_) => message,
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

/// Whether a message of so many bytes may be what peers ask for (`asks`: they do), or be shown.
fn is_wanted(bytes: u64, asks: bool) -> bool {
    asks && direct::may_meet(bytes) || direct::may_show(bytes)
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

/// When several messages of a collective end, if they may be shown.
fn until_return(may_be_shown: bool) -> Until {
    match may_be_shown && sessions::is_only_one() {
        true => Until::ReturnOfSeveral,
        false => Until::Unknown,
    }
}
