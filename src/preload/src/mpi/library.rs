//! Which MPI library this is, and the few of its functions that copytune calls itself.

use crate::sys::{modules, resolve};
use copytune_core::mpi::calls::Binding;
use copytune_core::mpi::version;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicPtr, Ordering};

/// The families of MPI libraries, by the shape of their handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Handles are pointers to the library's own objects.
    OpenMpi,
    /// Handles are ints with a fixed encoding.
    Mpich,
    /// The ABI of MPI 5.0: handles are words, constants small numbers.
    Standard,
}

/// The loaded MPI library.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    /// Its family.
    pub family: Family,
    /// `MPI_COMM_WORLD`.
    pub world: usize,
    /// `MPI_DATATYPE_NULL`.
    pub no_datatype: usize,
    type_size: Option<unsafe extern "C" fn(usize, *mut c_int) -> c_int>,
    type_extent: Option<Extent>,
    type_true_extent: Option<Extent>,
}

/// This process's place in a communicator.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Its rank.
    pub rank: i64,
    /// How many ranks there are.
    pub ranks: i64,
}

type Extent = unsafe extern "C" fn(usize, *mut isize, *mut isize) -> c_int;
type AskOne = unsafe extern "C" fn(usize, *mut c_int) -> c_int;
type ByReference2 = unsafe extern "C" fn(*const c_int, *mut c_int, *mut c_int);
type ByReference3 = unsafe extern "C" fn(*const c_int, *mut isize, *mut isize, *mut c_int);

/// Size and extents of a datatype, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of data (MPI_Type_size).
    pub size: i64,
    /// Distance between elements (MPI_Type_get_extent).
    pub extent: i64,
    /// First byte of data relative to the element's address (MPI_Type_get_true_extent).
    pub true_lb: i64,
    /// Span of the data.
    pub true_extent: i64,
}

/// A function of the library, looked up once: dlsym(3) takes as long as some messages, most of all for what there is not.
///
/// # Safety
/// The type must be the function pointer type of the symbol.
macro_rules! function {
    ($type:ty, $name:expr) => {{
        static FOUND: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
        function_at::<$type>(&FOUND, $name)
    }};
}

/// Stands for what was looked up and is not there.
const NOT_THERE: *mut u8 = core::ptr::dangling_mut();

/// # Safety
/// `F` must be the function pointer type of the symbol; `found` is that symbol's alone.
unsafe fn function_at<F>(found: &AtomicPtr<u8>, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut u8>()) };
    let address = looked_up(found, || resolve::search(name));
    // SAFETY: a non-null address of a function of that type, as the caller promises.
    (!address.is_null()).then(|| unsafe { core::mem::transmute_copy::<*mut u8, F>(&address) })
}

/// What `found` remembers of a search, which it does not hold before the first one; null: there is none.
fn looked_up(found: &AtomicPtr<u8>, search: impl FnOnce() -> *const u8) -> *mut u8 {
    let mut address = found.load(Ordering::Relaxed);
    if address.is_null() {
        address = search().cast_mut();
        let known = if address.is_null() {
            NOT_THERE
        } else {
            address
        };
        found.store(known, Ordering::Relaxed);
    }
    if address == NOT_THERE {
        return core::ptr::null_mut();
    }
    address
}

/// Bytes of one element of a predefined datatype of Open MPI, given by its handle, if the elements of several leave no gap. Those that a
/// program or the library makes lie in no module; they are left out, as their places come back with another meaning.
pub fn packed_bytes(datatype: usize) -> Option<usize> {
    if !modules::hold(datatype) {
        return None;
    }
    let Layout {
        size,
        extent,
        true_lb,
        true_extent,
    } = Library::detect()?.layout(datatype)?;
    let is_packed = size == extent && size == true_extent && true_lb == 0;
    usize::try_from(size).ok().filter(|_| is_packed)
}

/// Whether the library's handles are those of the MPI 5.0 ABI. The function alone does not tell: a library that has
/// it but another ABI, as MPICH 5's usual one, answers -1 (MPI 5.0, section 20.2).
fn has_standard_abi() -> bool {
    type Ask = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    let (mut major, mut minor): (c_int, c_int) = (-1, -1);
    // Not remembered: the MPI library may be loaded later.
    let ask = resolve::search(c"PMPI_Abi_get_version");
    // SAFETY: int MPI_Abi_get_version(int *major, int *minor), or null; callable at any time; results go to live ints.
    unsafe {
        if let Some(ask) = core::mem::transmute::<*const u8, Option<Ask>>(ask) {
            ask(&raw mut major, &raw mut minor);
        }
    }
    major > 0
}

impl Library {
    /// Looks at what is loaded; `None` where it is no library that copytune knows.
    pub fn detect() -> Option<Self> {
        let has = |name| !resolve::search(name).is_null();
        let (family, world, no_datatype) = if has_standard_abi() {
            // MPI 5.0, section 20.1 and appendix A: MPI_COMM_WORLD and MPI_DATATYPE_NULL.
            (Family::Standard, 257, 512)
        } else if has(c"ompi_mpi_init") {
            (
                Family::OpenMpi,
                resolve::variable(c"ompi_mpi_comm_world") as usize,
                resolve::variable(c"ompi_mpi_datatype_null") as usize,
            )
        } else if has(c"MPIR_Dup_fn") || has(c"MPII_Version_device") {
            // MPICH's mpi.h, from which the first name comes too: MPI_COMM_WORLD and MPI_DATATYPE_NULL.
            (Family::Mpich, 0x4400_0000, 0x0c00_0000)
        } else {
            return None;
        };
        // SAFETY: the C bindings of MPI 4.0, A.3.2; handles are words (ints are passed in whole registers).
        let (type_size, type_extent, type_true_extent) = unsafe {
            (
                function!(AskOne, c"PMPI_Type_size"),
                function!(Extent, c"PMPI_Type_get_extent"),
                function!(Extent, c"PMPI_Type_get_true_extent"),
            )
        };
        Some(Self {
            family,
            world,
            no_datatype,
            type_size,
            type_extent,
            type_true_extent,
        })
    }

    /// Bytes of a C request handle.
    pub fn request_size(&self) -> usize {
        match self.family {
            Family::Mpich => 4,
            Family::OpenMpi | Family::Standard => 8,
        }
    }

    /// The layout of a datatype given by its C handle.
    pub fn layout(&self, datatype: usize) -> Option<Layout> {
        let (mut size, mut lb, mut extent, mut true_lb, mut true_extent) =
            (0, 0isize, 0isize, 0isize, 0isize);
        // SAFETY: MPI is initialised, the handle is one that the program is passing to MPI in this very call, and
        // each result goes to a live variable of the binding's type.
        let failed = unsafe {
            self.type_size?(datatype, &raw mut size)
                | self.type_extent?(datatype, &raw mut lb, &raw mut extent)
                | self.type_true_extent?(datatype, &raw mut true_lb, &raw mut true_extent)
        };
        layout(failed, size, extent, true_lb, true_extent)
    }

    /// The layout of a datatype given by its Fortran handle.
    pub fn layout_fortran(&self, datatype: c_int) -> Option<Layout> {
        // SAFETY: the Fortran bindings of MPI 4.0, A.4: everything by reference.
        let (type_size, type_extent, type_true_extent) = unsafe {
            (
                function!(ByReference2, c"pmpi_type_size_")?,
                function!(ByReference3, c"pmpi_type_get_extent_")?,
                function!(ByReference3, c"pmpi_type_get_true_extent_")?,
            )
        };
        let (mut size, mut lb, mut extent, mut true_lb, mut true_extent) =
            (0, 0isize, 0isize, 0isize, 0isize);
        let mut errors = [0; 3];
        let [first, second, third] = &mut errors;
        // SAFETY: as in `layout`, by reference.
        unsafe {
            type_size(&raw const datatype, &raw mut size, first);
            type_extent(&raw const datatype, &raw mut lb, &raw mut extent, second);
            type_true_extent(
                &raw const datatype,
                &raw mut true_lb,
                &raw mut true_extent,
                third,
            );
        }
        layout(
            errors.into_iter().fold(0, |all, one| all | one),
            size,
            extent,
            true_lb,
            true_extent,
        )
    }

    /// (rank, number of ranks) in MPI_COMM_WORLD; from the launcher's environment where there is no such
    /// communicator (a program that only uses sessions).
    pub fn place(&self, world_exists: bool) -> (u32, u32) {
        let (mut rank, mut size): (c_int, c_int) = (0, 1);
        // SAFETY: the C bindings of MPI_Comm_rank and MPI_Comm_size.
        let (comm_rank, comm_size) = unsafe {
            (
                function!(AskOne, c"PMPI_Comm_rank"),
                function!(AskOne, c"PMPI_Comm_size"),
            )
        };
        if let (true, Some(comm_rank), Some(comm_size)) = (world_exists, comm_rank, comm_size) {
            // SAFETY: MPI is initialised; results go to live ints.
            unsafe {
                comm_rank(self.world, &raw mut rank);
                comm_size(self.world, &raw mut size);
            }
        } else {
            let number = |names: [&str; 2]| {
                names
                    .iter()
                    .find_map(|name| std::env::var(name).ok()?.parse::<c_int>().ok())
            };
            rank = number(["OMPI_COMM_WORLD_RANK", "PMI_RANK"]).unwrap_or(0);
            size = number(["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]).unwrap_or(1);
        }
        (rank.max(0) as u32, size.max(1) as u32)
    }

    /// How many of `ranks` ranks run on this host, as far as the launcher tells: Open MPI's, Hydra (MPICH, Intel MPI), Slurm's.
    pub fn ranks_here(ranks: u32) -> u32 {
        const NAMES: [&str; 3] = [
            "OMPI_COMM_WORLD_LOCAL_SIZE",
            "MPI_LOCALNRANKS",
            "SLURM_NTASKS_PER_NODE",
        ];
        let told = NAMES
            .iter()
            .find_map(|name| std::env::var(name).ok()?.parse().ok());
        told.unwrap_or(ranks).clamp(1, ranks.max(1))
    }

    /// Whether a word for a buffer is MPI_IN_PLACE; `None` where that cannot be told.
    pub fn is_in_place(&self, word: usize, binding: Binding) -> Option<bool> {
        if binding.has_descriptors() {
            return None;
        }
        if !binding.is_fortran() {
            // Open MPI's and MPICH's mpi.h, and MPI 5.0, appendix A.
            let constant = match self.family {
                Family::OpenMpi | Family::Standard => 1,
                Family::Mpich => usize::MAX,
            };
            return Some(word == constant);
        }
        // A variable of a common block, in Open MPI under the names that compilers give it (mpif-h's constants.h).
        const NAMES: [&CStr; 4] = [
            c"mpi_fortran_in_place_",
            c"mpi_fortran_in_place",
            c"mpi_fortran_in_place__",
            c"MPI_FORTRAN_IN_PLACE",
        ];
        static FOUND: [AtomicPtr<u8>; NAMES.len()] =
            [const { AtomicPtr::new(core::ptr::null_mut()) }; NAMES.len()];
        static POINTER: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
        let known = match self.family {
            Family::OpenMpi => core::array::from_fn(|number| {
                looked_up(&FOUND[number], || resolve::variable(NAMES[number])) as usize
            }),
            Family::Mpich => {
                let pointer = looked_up(&POINTER, || resolve::variable(c"MPIR_F_MPI_IN_PLACE"));
                // SAFETY: null, or a pointer variable of the library, which it has set by its start.
                let variable = unsafe { pointer.cast::<usize>().as_ref() };
                [variable.copied().unwrap_or(0), 0, 0, 0]
            }
            Family::Standard => [0; NAMES.len()],
        };
        let is_known = known.iter().any(|&address| address != 0);
        is_known.then(|| word != 0 && known.contains(&word))
    }

    /// The place in the communicator that a word of a call stands for; `None` where it connects two groups.
    pub fn communicator(&self, word: usize, binding: Binding) -> Option<Place> {
        let [mut two_groups, mut rank, mut ranks]: [c_int; 3] = [1, 0, 0];
        let failed = if binding.is_fortran() {
            let handle = word as *const c_int;
            let mut errors = [0; 3];
            let [first, second, third] = &mut errors;
            // SAFETY: the Fortran bindings of MPI 4.0, A.4: a communicator is an INTEGER, or a derived type that holds
            // one, by reference; it is the program's, in this very call. Results go to live variables.
            unsafe {
                function!(ByReference2, c"pmpi_comm_test_inter_")?(
                    handle,
                    &raw mut two_groups,
                    first,
                );
                function!(ByReference2, c"pmpi_comm_rank_")?(handle, &raw mut rank, second);
                function!(ByReference2, c"pmpi_comm_size_")?(handle, &raw mut ranks, third);
            }
            errors.into_iter().fold(0, |all, one| all | one)
        } else {
            // SAFETY: the C bindings; MPICH's handles are ints, passed in whole registers.
            unsafe {
                function!(AskOne, c"PMPI_Comm_test_inter")?(word, &raw mut two_groups)
                    | function!(AskOne, c"PMPI_Comm_rank")?(word, &raw mut rank)
                    | function!(AskOne, c"PMPI_Comm_size")?(word, &raw mut ranks)
            }
        };
        (failed == 0 && two_groups == 0).then_some(Place {
            rank: rank.into(),
            ranks: ranks.into(),
        })
    }

    /// Name and version as the library tells them (MPI_Get_library_version), one line.
    pub fn version(&self) -> String {
        type Ask = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
        // MPI_MAX_LIBRARY_VERSION_STRING is 8192 in MPICH and the MPI 5.0 ABI, 256 in Open MPI.
        let mut text = vec![0u8; 8193];
        let mut length: c_int = 0;
        // SAFETY: the C binding; the buffer is as long as the longest that any of the libraries writes.
        unsafe {
            if let Some(ask) = function!(Ask, c"PMPI_Get_library_version") {
                ask(text.as_mut_ptr().cast(), &raw mut length);
            }
        }
        let text = text.get(..length.max(0) as usize).unwrap_or(&[]);
        let text = String::from_utf8_lossy(text);
        version::short(&text, self.family == Family::OpenMpi)
    }
}

fn layout(
    failed: c_int,
    size: c_int,
    extent: isize,
    true_lb: isize,
    true_extent: isize,
) -> Option<Layout> {
    // A size that does not fit an int comes as MPI_UNDEFINED, which is negative.
    (failed == 0 && size >= 0).then_some(Layout {
        size: i64::from(size),
        extent: extent as i64,
        true_lb: true_lb as i64,
        true_extent: true_extent as i64,
    })
}
