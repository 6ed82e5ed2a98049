//! The words by which a sender tells where a message lies, while threads write and read them at once, and while a thread that
//! answers is interrupted at any instruction: what is believed was so.

mod notices;

use copytune_protocol::PAGE;
use copytune_protocol::notice::Location;
use notices::copies::COPY;
use notices::{BYTES, CLOCK, HEAD, Sender, WHOLE};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

/// What a sender that shows one message after the other has made of them.
struct Race {
    sender: Sender,
    /// By number: which of two places it lies at, plus one.
    places: Vec<AtomicU8>,
    over: AtomicBool,
    told: AtomicUsize,
    wrong: AtomicUsize,
}

const ARENA_OFFSETS: [u64; 2] = [8 * PAGE as u64, 24 * PAGE as u64];

impl Race {
    /// Readers and threads that answer run against a sender that lays its message anew before each time that it shows it; it
    /// hides it before, as it must, or does not. Ends after that many times, or as soon as `is_enough`.
    fn run(seed: u64, times: usize, hides: bool, is_enough: impl Fn(&Race) -> bool) -> Race {
        let race = Race {
            sender: Sender::new(),
            places: (0..=times).map(|_| AtomicU8::new(0)).collect(),
            over: AtomicBool::new(false),
            told: AtomicUsize::new(0),
            wrong: AtomicUsize::new(0),
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| race.answer());
                scope.spawn(|| race.read());
            }
            race.show(seed, hides, is_enough);
            race.over.store(true, SeqCst);
        });
        race
    }

    fn show(&self, seed: u64, hides: bool, is_enough: impl Fn(&Race) -> bool) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let life = self.sender.life();
        for (number, place) in self.places.iter().enumerate().skip(1) {
            let which = random.next_u64() as usize % ARENA_OFFSETS.len();
            self.sender.lay(ARENA_OFFSETS[which]);
            self.sender.fill(which as u8);
            place.store(which as u8 + 1, Relaxed);
            self.sender.show(number as u64, life);
            for _ in 0..random.next_u64() % 3000 {
                std::hint::spin_loop();
            }
            if hides {
                self.sender.notice.hide();
            }
            if is_enough(self) {
                return;
            }
        }
    }

    fn answer(&self) {
        while !self.over.load(Relaxed) {
            self.sender.answer();
        }
    }

    fn read(&self) {
        let mut target = vec![0u8; BYTES];
        while !self.over.load(Relaxed) {
            let Some(number) = self.sender.number() else {
                continue;
            };
            let place = self
                .sender
                .notice
                .place(number, Some(&CLOCK), self.sender.lives);
            let expected = self.places[number as usize].load(Relaxed);
            if let Location::At(place) = place {
                self.told.fetch_add(1, Relaxed);
                if place != ARENA_OFFSETS[usize::from(expected) - 1] {
                    self.wrong.fetch_add(1, Relaxed);
                }
            }
            // SAFETY: a notice of the sender's, room for the message.
            let read = unsafe {
                let target = target.as_mut_ptr();
                self.sender
                    .notice
                    .read(target, self.sender.start, BYTES, self.sender.lives, COPY)
            };
            let first = target[0];
            let is_whole = [HEAD - 1, HEAD + WHOLE, BYTES - 1]
                .iter()
                .all(|place| target[*place] == first.wrapping_add(*place as u8));
            if read && !is_whole {
                self.wrong.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Whatever is believed is so.
#[test]
fn what_is_told_was_so() {
    let seed = std::env::var("COPYTUNE_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261);
    println!("COPYTUNE_TEST_SEED={seed}");
    let began = Instant::now();
    let is_enough = |_: &Race| began.elapsed() > Duration::from_millis(1500);
    let race = Race::run(seed, 20_000, true, is_enough);
    println!("{} told", race.told.load(SeqCst));
    assert_eq!(race.wrong.load(SeqCst), 0, "of {:?}", race.told);
    assert!(race.told.load(SeqCst) > 0);
}

/// The test above would see it if a message were laid elsewhere while it is shown.
#[test]
fn what_is_not_hidden_is_told_wrong() {
    let is_enough = |race: &Race| race.wrong.load(SeqCst) > 0;
    let race = Race::run(1, 1_000_000, false, is_enough);
    assert!(race.wrong.load(SeqCst) > 0, "of {:?}", race.told);
}

/// A thread that answers, one instruction at a time. Before one of them the message is hidden, laid elsewhere, shown anew and
/// answered for by somebody else.
struct Steps {
    sender: Sender,
    /// Instructions until then.
    left: AtomicU64,
    /// The new number; 0 before.
    number: AtomicU64,
    next: AtomicU64,
    wrong: AtomicU64,
    told: AtomicU64,
    life: usize,
}

static STEPS: AtomicPtr<Steps> = AtomicPtr::new(core::ptr::null_mut());

impl Steps {
    /// Before each instruction.
    fn step(&self) {
        let left = self.left.load(Relaxed);
        self.left.store(left.wrapping_sub(1), Relaxed);
        if left == 0 {
            let number = self.next.load(Relaxed);
            self.sender.notice.hide();
            self.sender.lay(ARENA_OFFSETS[1]);
            self.sender.show(number, Some(self.life));
            self.sender.answer();
            self.number.store(number, Relaxed);
        }
        let number = self.number.load(Relaxed);
        if number != 0 {
            match self.sender.place(number) {
                Location::At(place) if place == ARENA_OFFSETS[1] => self.told.fetch_add(1, Relaxed),
                Location::At(_) => self.wrong.fetch_add(1, Relaxed),
                Location::Unknown | Location::Late => 0,
            };
        }
    }

    /// One answer, interrupted after `left` instructions; false: it had fewer.
    fn answer(&self, left: u64) -> bool {
        let number = self.next.fetch_add(2, Relaxed);
        self.sender.notice.hide();
        self.sender.lay(ARENA_OFFSETS[0]);
        self.sender.show(number, Some(self.life));
        self.number.store(0, Relaxed);
        self.left.store(left, Relaxed);
        // The trap flag: SIGTRAP after each instruction (Intel SDM vol. 3, 18.3.1.4).
        // SAFETY: pushes and pops the flags; the handler changes nothing that is this thread's.
        unsafe { core::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
        self.sender.answer();
        // SAFETY: as above.
        unsafe { core::arch::asm!("pushfq", "and qword ptr [rsp], ~0x100", "popfq") };
        self.number.load(Relaxed) != 0
    }
}

extern "C" fn stepped(_: i32) {
    // SAFETY: errno is the thread's own; null, or what the only test that traps has set.
    unsafe {
        let errno = *libc::__errno_location();
        if let Some(steps) = STEPS.load(Relaxed).as_ref() {
            steps.step();
        }
        *libc::__errno_location() = errno;
    }
}

/// A thread of a program with MPI_THREAD_MULTIPLE may lose its processor anywhere, and answer for a message that is over.
#[test]
fn a_late_answer_is_to_its_own_question() {
    let sender = Sender::new();
    let life = sender.life().unwrap();
    let steps = Box::leak(Box::new(Steps {
        sender,
        left: AtomicU64::new(0),
        number: AtomicU64::new(0),
        next: AtomicU64::new(1),
        wrong: AtomicU64::new(0),
        told: AtomicU64::new(0),
        life,
    }));
    // The first answer of a process finds out which way the kernel has.
    steps.sender.answer();
    STEPS.store(steps, SeqCst);
    // SAFETY: a handler that only makes system calls and uses atomics.
    unsafe { libc::signal(libc::SIGTRAP, stepped as *const () as libc::sighandler_t) };
    let count = (0..).take_while(|left| steps.answer(*left)).count();
    STEPS.store(core::ptr::null_mut(), SeqCst);
    println!(
        "{count} instructions, {} times told",
        steps.told.load(Relaxed)
    );
    assert!(count > 20 && steps.told.load(Relaxed) > 0);
    assert_eq!(steps.wrong.load(Relaxed), 0);
}
