//! What an installed MPI library has of the settings: read from the library itself, by MPI's own interface for tools (MPI_T, MPI 3.1,
//! chapter 14.3) and UCX's for its configuration.
//!
//! Neither initialises MPI. Still, a library's code runs, so it runs in a process of its own ([`told`] starts it, [`read`] is what it does).

use super::catalogue;
use crate::mpi::version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A setting of an installed library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Value {
    /// What it is set to here: the library's default, or what its files or the environment say.
    pub current: String,
    /// The words that it may be set to; empty where it is a number or anything else.
    pub words: Vec<String>,
}

/// An installed library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Library {
    /// Name and version, as in a state's key.
    pub version: String,
    /// MPICH's device, such as `ch4:ucx`; else empty.
    pub device: String,
    /// Those settings of the catalogue that it has, by name.
    pub values: BTreeMap<String, Value>,
}

/// Asks the library `mpi`, by a process: `command` with these two libraries as its last arguments calls [`read`] and prints the result
/// as a line of JSON. `ucx` is the file or the name of UCX's library.
///
/// # Errors
/// A sentence.
pub fn told(mut command: Command, mpi: &Path, ucx: &Path) -> Result<Library, String> {
    let cannot = |why: &str| {
        format!(
            "the settings of {} cannot be read: {why}; `copytune run` works without them",
            mpi.display()
        )
    };
    let output = command
        .arg(mpi)
        .arg(ucx)
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| cannot(&error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    // The libraries may print what they like before it.
    let last = said.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|_| {
        let why = String::from_utf8_lossy(&output.stderr);
        let why = why.lines().last().unwrap_or("it gave no answer").to_owned();
        cannot(why.trim_start_matches("copytune: "))
    })
}

/// Reads the settings of the library in that file. The library stays loaded: call it in a process that does nothing else.
///
/// # Errors
/// It is no MPI library, or has no interface for tools.
pub fn read(mpi: &Path, ucx: &Path) -> Result<Library, String> {
    let loaded = Loaded::open(mpi.as_os_str())?;
    let text = loaded.version()?;
    let device = text
        .lines()
        .find_map(|line| line.strip_prefix("MPICH Device:"));
    let mut values = BTreeMap::new();
    let tools = loaded.tools()?;
    for name in catalogue::names() {
        if let Some(value) = tools.value(name) {
            values.insert(name.to_owned(), value);
        }
    }
    // It is not there where nothing needs it.
    if let Ok(loaded) = Loaded::open(ucx.as_os_str()) {
        values.extend(loaded.ucx().unwrap_or_default());
    }
    Ok(Library {
        version: version::short(&text, text.starts_with("Open MPI")),
        device: device.unwrap_or("").trim().to_owned(),
        values,
    })
}

/// A loaded shared library.
struct Loaded(*mut c_void);

/// The function of that name and type, or `None` where the library has none.
macro_rules! function {
    ($loaded:expr, $name:literal, $type:ty) => {
        $loaded.symbol($name).map(|address| {
            // SAFETY: the function has this type: the C binding of MPI 3.1 or of ucp.h, whose handles are pointers or ints, and those
            // are written to words and passed as words.
            unsafe { std::mem::transmute::<*mut c_void, $type>(address) }
        })
    };
}

type GetInfo = unsafe extern "C" fn(
    c_int,
    *mut c_char,
    *mut c_int,
    *mut c_int,
    *mut usize,
    *mut usize,
    *mut c_char,
    *mut c_int,
    *mut c_int,
    *mut c_int,
) -> c_int;

/// MPI's functions for tools. A handle of the library is a pointer or an int; both fit a word.
struct Tools {
    index: unsafe extern "C" fn(*const c_char, *mut c_int) -> c_int,
    info: GetInfo,
    open: unsafe extern "C" fn(c_int, *mut c_void, *mut usize, *mut c_int) -> c_int,
    read: unsafe extern "C" fn(usize, *mut c_void) -> c_int,
    words: unsafe extern "C" fn(usize, *mut c_int, *mut c_char, *mut c_int) -> c_int,
    word: unsafe extern "C" fn(usize, c_int, *mut c_int, *mut c_char, *mut c_int) -> c_int,
}

/// Longest name, description or value that is read.
const LONGEST: usize = 8192;

impl Loaded {
    fn open(name: &OsStr) -> Result<Loaded, String> {
        let text =
            CString::new(name.as_bytes()).map_err(|_| "its name has a zero byte".to_owned())?;
        // SAFETY: the name ends with a zero byte. What the library does when it is loaded is what it does in every program; its modules
        // look for its symbols among the global ones.
        let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if !handle.is_null() {
            return Ok(Loaded(handle));
        }
        // SAFETY: dlerror returns null or a text that stays until the next call (dlerror(3)).
        let error = unsafe {
            let error = libc::dlerror();
            (!error.is_null()).then(|| CStr::from_ptr(error).to_string_lossy().into_owned())
        };
        Err(error.unwrap_or_else(|| "it cannot be loaded".to_owned()))
    }

    fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is open, for it is never closed.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// What MPI_Get_library_version tells, which may be called at any time.
    fn version(&self) -> Result<String, String> {
        type Ask = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
        let ask = function!(self, c"MPI_Get_library_version", Ask).ok_or("it is no MPI library")?;
        let mut text = vec![0u8; LONGEST + 1];
        let mut length = 0;
        // SAFETY: the buffer is as long as the longest version that MPI libraries write.
        unsafe { ask(text.as_mut_ptr().cast(), &raw mut length) };
        let end = usize::try_from(length).unwrap_or(0).min(LONGEST);
        Ok(String::from_utf8_lossy(&text[..end])
            .trim_end_matches('\0')
            .to_owned())
    }

    fn tools(&self) -> Result<Tools, String> {
        type Init = unsafe extern "C" fn(c_int, *mut c_int) -> c_int;
        let lacks = || "it has no MPI_T, MPI's interface for tools".to_owned();
        let init = function!(self, c"MPI_T_init_thread", Init).ok_or_else(lacks)?;
        let all = || {
            Some(Tools {
                index: function!(
                    self,
                    c"MPI_T_cvar_get_index",
                    unsafe extern "C" fn(*const c_char, *mut c_int) -> c_int
                )?,
                info: function!(self, c"MPI_T_cvar_get_info", GetInfo)?,
                open: function!(
                    self,
                    c"MPI_T_cvar_handle_alloc",
                    unsafe extern "C" fn(c_int, *mut c_void, *mut usize, *mut c_int) -> c_int
                )?,
                read: function!(
                    self,
                    c"MPI_T_cvar_read",
                    unsafe extern "C" fn(usize, *mut c_void) -> c_int
                )?,
                words: function!(
                    self,
                    c"MPI_T_enum_get_info",
                    unsafe extern "C" fn(usize, *mut c_int, *mut c_char, *mut c_int) -> c_int
                )?,
                word: function!(
                    self,
                    c"MPI_T_enum_get_item",
                    unsafe extern "C" fn(
                        usize,
                        c_int,
                        *mut c_int,
                        *mut c_char,
                        *mut c_int,
                    ) -> c_int
                )?,
            })
        };
        let tools = all().ok_or_else(lacks)?;
        let mut provided = 0;
        // SAFETY: 0 is MPI_THREAD_SINGLE in every MPI library.
        match unsafe { init(0, &raw mut provided) } {
            0 => Ok(tools),
            error => Err(format!("MPI_T_init_thread failed with error {error}")),
        }
    }

    /// UCX's settings of the catalogue, with those words that it accepts.
    fn ucx(&self) -> Option<BTreeMap<String, Value>> {
        type Read = unsafe extern "C" fn(*const c_char, *const c_char, *mut usize) -> c_int;
        type Print = unsafe extern "C" fn(usize, *mut libc::FILE, *const c_char, c_int);
        type Modify = unsafe extern "C" fn(usize, *const c_char, *const c_char) -> c_int;
        /// UCS_CONFIG_PRINT_CONFIG.
        const NAMES_AND_VALUES: c_int = 1;
        let read = function!(self, c"ucp_config_read", Read)?;
        let print = function!(self, c"ucp_config_print", Print)?;
        let modify = function!(self, c"ucp_config_modify", Modify)?;
        let mut configuration = 0;
        let (mut text, mut length) = (std::ptr::null_mut(), 0);
        // SAFETY: ucp.h: without prefix and file; the result goes to a live word. The stream is closed before its text is read, which
        // open_memstream(3) has allocated and nobody frees.
        let printed = unsafe {
            if read(std::ptr::null(), std::ptr::null(), &raw mut configuration) != 0 {
                return None;
            }
            let stream = libc::open_memstream(&raw mut text, &raw mut length);
            if stream.is_null() {
                return None;
            }
            print(configuration, stream, c"".as_ptr(), NAMES_AND_VALUES);
            libc::fclose(stream);
            std::slice::from_raw_parts(text.cast::<u8>(), length)
        };
        let printed = String::from_utf8_lossy(printed);
        let mut values = ucx_values(&printed);
        for (name, value) in &mut values {
            let own = name.trim_start_matches("UCX_");
            value.words.retain(|word| {
                let (Ok(own), Ok(word)) = (CString::new(own), CString::new(&**word)) else {
                    return false;
                };
                // SAFETY: the configuration was read above; both texts end with a zero byte.
                unsafe { modify(configuration, own.as_ptr(), word.as_ptr()) == 0 }
            });
        }
        Some(values)
    }
}

/// The settings of the catalogue in what UCX prints, `UCX_NAME=VALUE` in lines, with all words that are tried.
fn ucx_values(printed: &str) -> BTreeMap<String, Value> {
    let of = |line: &str| {
        let (name, current) = line.trim().split_once('=')?;
        let setting = catalogue::SETTINGS.iter().find(|setting| {
            setting.source == catalogue::Source::Ucx && setting.names.contains(&name)
        })?;
        let words = match setting.candidates {
            catalogue::Candidates::Words(words) => {
                words.iter().map(|&word| word.to_owned()).collect()
            }
            catalogue::Candidates::Times(_) => Vec::new(),
        };
        let current = current.to_owned();
        Some((name.to_owned(), Value { current, words }))
    };
    printed.lines().filter_map(of).collect()
}

impl Tools {
    /// The control variable of that name; `None` where the library has none, or none that can be read without an object.
    fn value(&self, name: &str) -> Option<Value> {
        let text = CString::new(name).ok()?;
        let mut index = 0;
        let (mut own, mut about) = (vec![0u8; LONGEST], vec![0u8; LONGEST]);
        let (mut own_length, mut about_length) = (LONGEST as c_int, LONGEST as c_int);
        let (mut verbosity, mut bind, mut scope) = (0, 0, 0);
        let (mut datatype, mut words) = (0usize, 0usize);
        let (mut handle, mut count) = (0usize, 0);
        // SAFETY: MPI 3.1, 14.3.6: every result goes to a live place, whose length is told where there is one. The library is
        // initialised for tools. A variable that belongs to no object takes a null pointer for it.
        unsafe {
            if (self.index)(text.as_ptr(), &raw mut index) != 0 {
                return None;
            }
            let failed = (self.info)(
                index,
                own.as_mut_ptr().cast(),
                &raw mut own_length,
                &raw mut verbosity,
                &raw mut datatype,
                &raw mut words,
                about.as_mut_ptr().cast(),
                &raw mut about_length,
                &raw mut bind,
                &raw mut scope,
            );
            if failed != 0
                || (self.open)(index, std::ptr::null_mut(), &raw mut handle, &raw mut count) != 0
            {
                return None;
            }
        }
        let bytes = self.bytes(handle, usize::try_from(count).ok()?)?;
        let words = self.words(words);
        // A text has as many elements as bytes.
        let number = number(&bytes).filter(|_| count == 1);
        let named = words
            .iter()
            .find(|(value, _)| number == Some(i128::from(*value)));
        let current = match (named, number) {
            (Some((_, word)), _) => word.clone(),
            (None, Some(number)) => number.to_string(),
            (None, None) => {
                let end = bytes
                    .iter()
                    .position(|byte| *byte == 0)
                    .unwrap_or(bytes.len());
                String::from_utf8_lossy(&bytes[..end]).into_owned()
            }
        };
        let words = words.into_iter().map(|(_, word)| word).collect();
        Some(Value { current, words })
    }

    /// The bytes of a variable of `count` elements. How long one is follows from what the library writes: what is the same whether the
    /// place was filled with zeros or with ones before.
    fn bytes(&self, handle: usize, count: usize) -> Option<Vec<u8>> {
        /// No element is longer.
        const ELEMENT: usize = 16;
        let length = count
            .checked_mul(ELEMENT)
            .filter(|length| *length <= LONGEST * ELEMENT)?;
        let (mut zeros, mut ones) = (vec![0u8; length], vec![!0u8; length]);
        // SAFETY: the handle was given by the library, and both places hold so many elements of any type.
        let failed = unsafe {
            (self.read)(handle, zeros.as_mut_ptr().cast()) != 0
                || (self.read)(handle, ones.as_mut_ptr().cast()) != 0
        };
        let written = zeros
            .iter()
            .zip(&ones)
            .take_while(|(zero, one)| zero == one);
        let written = written.count();
        zeros.truncate(written);
        (!failed).then_some(zeros)
    }

    /// The numbers and words of an enumeration; none where the handle is none.
    fn words(&self, handle: usize) -> Vec<(c_int, String)> {
        if handle == 0 {
            return Vec::new();
        }
        let mut name = vec![0u8; LONGEST];
        let (mut count, mut length) = (0, LONGEST as c_int);
        // SAFETY: the handle was given by the library; the results go to live places, whose length is told.
        if unsafe {
            (self.words)(
                handle,
                &raw mut count,
                name.as_mut_ptr().cast(),
                &raw mut length,
            )
        } != 0
        {
            return Vec::new();
        }
        let word = |place: c_int| {
            let mut name = vec![0u8; LONGEST];
            let (mut value, mut length) = (0, LONGEST as c_int);
            // SAFETY: as above.
            let failed = unsafe {
                (self.word)(
                    handle,
                    place,
                    &raw mut value,
                    name.as_mut_ptr().cast(),
                    &raw mut length,
                )
            };
            let text = CStr::from_bytes_until_nul(&name)
                .ok()?
                .to_string_lossy()
                .into_owned();
            (failed == 0).then_some((value, text))
        };
        (0..count).filter_map(word).collect()
    }
}

/// The number in bytes that a library has written, by how many there are: a truth value, an int, a size or a long. `None` of a text.
fn number(bytes: &[u8]) -> Option<i128> {
    match *bytes {
        [one] if one <= 1 => Some(one.into()),
        [a, b, c, d] => Some(i32::from_le_bytes([a, b, c, d]).into()),
        [a, b, c, d, e, f, g, h] => Some(u64::from_le_bytes([a, b, c, d, e, f, g, h]).into()),
        _ => None,
    }
}

/// Which library of those that a program loads is the MPI library, and which is UCX's, of files by name.
pub fn of_program(libraries: &[(String, PathBuf)]) -> Option<(PathBuf, PathBuf)> {
    /// The C bindings' library, of all MPI libraries; the others (`libmpi_mpifh.so`) need it.
    const MPI: &[&str] = &["libmpi", "libmpich", "libmpi_abi"];
    let stem = |name: &str| name.split(".so").next().unwrap_or("").to_owned();
    let find = |wanted: &[&str]| {
        let found = libraries
            .iter()
            .find(|(name, _)| wanted.contains(&&*stem(name)));
        found.map(|(_, path)| path.clone())
    };
    let ucx = find(&["libucp"]).unwrap_or_else(|| "libucp.so.0".into());
    Some((find(MPI)?, ucx))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ucx_prints_is_read() {
        // As ucp_config_print of UCX 1.13 prints it, shortened.
        let printed = "UCX_NET_DEVICES=all\nUCX_TLS=all\nUCX_RNDV_THRESH=auto\nUCX_RNDV_FRAG_SIZE=host:512K,cuda:4M\nUCX_RNDV_SCHEME=auto\n";
        let values = ucx_values(printed);
        let names: Vec<&String> = values.keys().collect();
        assert_eq!(names, ["UCX_RNDV_SCHEME", "UCX_RNDV_THRESH", "UCX_TLS"]);
        assert_eq!(values["UCX_TLS"].current, "all");
        assert!(values["UCX_RNDV_THRESH"].words.contains(&"inf".to_owned()));
        assert!(ucx_values("nothing\n=\nUCX_").is_empty());
    }

    #[test]
    fn numbers_are_known_by_their_length() {
        assert_eq!(number(&(-1i32).to_le_bytes()), Some(-1));
        assert_eq!(number(&u64::MAX.to_le_bytes()), Some(u64::MAX.into()));
        assert_eq!(number(&[1]), Some(1));
        assert_eq!(number(b"^ucx\0"), None);
        assert_eq!(number(b""), None);
    }

    #[test]
    fn the_mpi_library_is_found_among_those_of_a_program() {
        let all = |names: &[&str]| -> Vec<(String, PathBuf)> {
            let one = |name: &&str| ((*name).to_owned(), Path::new("/lib").join(name));
            names.iter().map(one).collect()
        };
        let fortran = all(&["libmpi_mpifh.so.40", "libmpi.so.40", "libc.so.6"]);
        assert_eq!(
            of_program(&fortran),
            Some(("/lib/libmpi.so.40".into(), "libucp.so.0".into()))
        );
        let mpich = all(&["libucp.so.0", "libmpichfort.so.12", "libmpich.so.12"]);
        assert_eq!(
            of_program(&mpich),
            Some(("/lib/libmpich.so.12".into(), "/lib/libucp.so.0".into()))
        );
        assert_eq!(of_program(&all(&["libmpi_mpifh.so.40", "libc.so.6"])), None);
    }

    #[test]
    fn what_is_no_mpi_library_is_said() {
        let none =
            read(Path::new("/none/libmpi.so"), Path::new("/none/libucp.so")).expect_err("no file");
        assert!(none.contains("/none/libmpi.so"), "{none}");
        let libc = read(Path::new("libc.so.6"), Path::new("/none/libucp.so")).expect_err("no MPI");
        assert!(libc.contains("no MPI library"), "{libc}");
        let mut talks = Command::new("sh");
        talks.args(["-c", "echo noise; echo 'copytune: it is broken' >&2"]);
        let said = told(talks, Path::new("/lib/libmpi.so"), Path::new("x")).expect_err("no answer");
        assert!(
            said.contains("/lib/libmpi.so cannot be read: it is broken;"),
            "{said}"
        );
    }
}
