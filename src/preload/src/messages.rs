//! Reads a call's arguments: where a message lies and how many bytes it has.

use crate::library::{Layout, Library};
use crate::ranges::Span;
use copytune_core::calls::{Binding, Data};
use core::sync::atomic::{AtomicU64, Ordering};

/// Counts the datatypes that were freed: a handle may come back with another meaning after that.
static FREED: AtomicU64 = AtomicU64::new(1);

/// A datatype handle has died.
pub fn datatype_freed() {
    FREED.fetch_add(1, Ordering::Relaxed);
}

/// One end of a message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Message {
    /// The memory it lies in, holes included.
    pub span: Span,
    /// Bytes of data.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    handle: usize,
    fortran: bool,
    /// Value of `FREED` when it was asked; 0 is never.
    at: u64,
    layout: Layout,
}

/// One thread's cache of datatype layouts (asking costs up to three calls of the library).
#[derive(Debug)]
pub struct Datatypes {
    library: Library,
    known: [Known; 32],
}

/// Argument `position` as an integer: by value in C, by reference in Fortran.
#[inline(always)]
pub fn integer(arguments: &[usize], position: u8, binding: Binding) -> i64 {
    let word = arguments.get(usize::from(position)).copied().unwrap_or(0);
    match binding {
        Binding::C => i64::from(word as i32),
        Binding::CLarge => word as i64,
        // SAFETY: the binding passes a default INTEGER by reference (MPI 4.0, A.4); it is the program's, live.
        Binding::Fortran | Binding::FortranDescriptor => unsafe {
            i64::from(*(word as *const i32))
        },
        // SAFETY: the large-count binding passes INTEGER(KIND=MPI_COUNT_KIND), 8 bytes, by reference.
        Binding::FortranDescriptorLarge => unsafe { *(word as *const i64) },
    }
}

impl Datatypes {
    /// An empty cache for `library`'s types.
    pub fn new(library: Library) -> Self {
        Self {
            library,
            known: [Known::default(); 32],
        }
    }

    /// Bytes of a C request handle of the library.
    pub fn request_size(&self) -> usize {
        self.library.request_size()
    }

    /// One end of the message of a call with these arguments.
    #[inline(always)]
    pub fn message(&mut self, data: Data, binding: Binding, arguments: &[usize]) -> Message {
        let count = integer(arguments, data.count, binding);
        if count <= 0 {
            // An empty message may come with any datatype, the null handle included: asking would be an error.
            return Message::default();
        }
        self.filled(count, data, binding, arguments)
    }

    #[inline]
    fn filled(&mut self, count: i64, data: Data, binding: Binding, arguments: &[usize]) -> Message {
        let Some(layout) = self.layout(arguments, data.datatype, binding) else {
            return Message::default();
        };
        let buffer = arguments
            .get(usize::from(data.buffer))
            .copied()
            .unwrap_or(0);
        let described = matches!(
            binding,
            Binding::FortranDescriptor | Binding::FortranDescriptorLarge
        );
        let (base, section) = if described {
            described_buffer(buffer)
        } else {
            (buffer, None)
        };
        let first = base as i64 + layout.true_lb;
        let last = first.saturating_add((count - 1).saturating_mul(layout.extent));
        let span = section.unwrap_or(Span {
            start: first.min(last) as usize,
            end: first.max(last).saturating_add(layout.true_extent) as usize,
        });
        Message {
            span,
            bytes: count.saturating_mul(layout.size) as u64,
        }
    }

    #[inline]
    fn layout(&mut self, arguments: &[usize], position: u8, binding: Binding) -> Option<Layout> {
        let word = arguments.get(usize::from(position)).copied().unwrap_or(0);
        let fortran = binding.is_fortran();
        let handle = if fortran {
            // SAFETY: a datatype is an INTEGER, or a derived type that holds one, by reference (MPI 4.0, 19.1).
            unsafe { *(word as *const u32) as usize }
        } else if self.library.request_size() == 4 {
            word as u32 as usize
        } else {
            word
        };
        let at = FREED.load(Ordering::Relaxed);
        // Open MPI's handles are aligned addresses, MPICH's have their index in the low byte.
        let place = (handle ^ handle >> 5 ^ handle >> 10) & 31;
        if let Some(known) = self.known.get(place)
            && known.handle == handle
            && known.at == at
            && known.fortran == fortran
        {
            return Some(known.layout);
        }
        self.ask(handle, fortran, at, place)
    }

    #[cold]
    fn ask(&mut self, handle: usize, fortran: bool, at: u64, place: usize) -> Option<Layout> {
        let layout = if fortran {
            self.library.layout_fortran(handle as i32)?
        } else if handle == self.library.no_datatype {
            return None;
        } else {
            self.library.layout(handle)?
        };
        if let Some(known) = self.known.get_mut(place) {
            *known = Known {
                handle,
                fortran,
                at,
                layout,
            };
        }
        Some(layout)
    }
}

/// Base address of a CFI descriptor (ISO_Fortran_binding.h: base_addr, elem_len, version, rank, attribute, type,
/// dim[] of lower bound, extent and stride in bytes), and the span of its elements where they are not contiguous.
fn described_buffer(descriptor: usize) -> (usize, Option<Span>) {
    if descriptor == 0 {
        return (0, None);
    }
    // SAFETY: the f08ts bindings pass a live CFI_cdesc_t; its leading members lie at these offsets in GCC's and
    // LLVM's ISO_Fortran_binding.h for 64-bit targets.
    let (base, element, rank) = unsafe {
        let words = descriptor as *const usize;
        (*words, *words.add(1), *(descriptor as *const i8).add(20))
    };
    let (mut low, mut high, mut contiguous) = (0i64, element as i64, element as i64);
    let mut gaps = false;
    for dimension in 0..usize::try_from(rank).unwrap_or(0).min(15) {
        // SAFETY: a descriptor of that rank has that many dimensions of three words each, after 24 bytes.
        let (extent, stride) = unsafe {
            let triple = (descriptor as *const i64).add(3 + 3 * dimension);
            (*triple.add(1), *triple.add(2))
        };
        if extent < 0 {
            // Assumed size: contiguous by definition, its length unknown.
            return (base, None);
        }
        gaps |= stride != contiguous && extent > 1;
        contiguous = contiguous.saturating_mul(extent);
        let reach = (extent - 1).max(0).saturating_mul(stride);
        low = low.saturating_add(reach.min(0));
        high = high.saturating_add(reach.max(0));
    }
    let span = Span {
        start: (base as i64).saturating_add(low) as usize,
        end: (base as i64).saturating_add(high) as usize,
    };
    (base, gaps.then_some(span))
}
