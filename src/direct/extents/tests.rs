use super::*;
use crate::direct::promotion_budget::{Credit, Paid, Worth};
use proptest::prelude::*;

const CREDIT: u64 = 5_000;
const PRICE: u64 = 300;
const PAGE: usize = 4096;

fn pages(start: usize, count: usize) -> Pages {
    Pages {
        start: start * PAGE,
        end: (start + count) * PAGE,
    }
}

/// A reader, and a sender that promotes what is asked for as src/preload does, page by page.
#[derive(Default)]
struct World {
    extents: Extents,
    account: Account,
    generation: u64,
    asked: Vec<Pages>,
    promoted: std::collections::BTreeSet<usize>,
    promotions: u64,
    saved: u64,
    direct: u32,
    vain: u32,
    /// Messages of which nothing was to be decided.
    waited: u32,
    requests: u32,
    /// Shorter messages have nothing promoted, in pages.
    promotes_nothing_below: usize,
}

fn price(bytes: usize) -> u64 {
    PRICE + bytes as u64 / 100
}

impl World {
    /// A message that has no history of its own is sent. A direct copy saves one in a thousand bytes.
    fn send(&mut self, message: Pages) {
        let copy = KernelCopy {
            bytes: message.bytes(),
            gain: message.bytes() as u64 / 1000,
            is_first: false,
            price: 0,
            around: 0,
            first: 0,
            credit: Credit {
                usual: CREDIT,
                adopted: CREDIT,
                known: CREDIT,
                together: 0,
            },
            ..KernelCopy::default()
        };
        let numbers = |pages: Pages| pages.start / PAGE..pages.end / PAGE;
        let (promoted, all) = (&mut self.promoted, message);
        self.asked.retain(|asked| {
            let common = asked.common(all);
            let may_be = all.bytes() >= self.promotes_nothing_below * PAGE;
            let is_met = may_be && !is_less_than_most(common, asked.bytes());
            if is_met {
                let part = Pages {
                    start: asked.start.max(all.start),
                    end: asked.end.min(all.end),
                };
                let new = numbers(part).filter(|page| promoted.insert(*page)).count();
                self.promotions += price(new * PAGE);
                self.generation += 1;
            }
            !is_met
        });
        let is_hinted = self.extents.are_readable(message)
            || self.extents.may_be_readable(message, self.generation);
        if is_hinted {
            if numbers(message).all(|page| self.promoted.contains(&page)) {
                (self.extents).were_read(&mut self.account, message, (message.bytes(), copy.gain));
                Buffer::default().read_directly(
                    &mut self.account,
                    message.bytes(),
                    copy.gain,
                    || 0,
                );
                self.saved += copy.gain;
                self.direct += 1;
                return;
            }
            self.extents.were_not_read(message, self.generation);
            self.vain += 1;
        }
        match self.extents.know(message) {
            false => self.extents.meet(message, (message.start, message.bytes())),
            true if (self.extents).waits(
                &mut self.account,
                message,
                message.bytes(),
                self.generation,
            ) =>
            {
                self.waited += 1;
            }
            true => {
                let asked = self.extents.read_by_kernel(
                    &mut self.account,
                    message,
                    copy,
                    price,
                    false,
                    self.generation,
                );
                if let Some(new) = asked {
                    self.requests += 1;
                    self.asked.retain(|asked| asked.common(new) == 0);
                    self.asked.push(new);
                }
            }
        }
    }

    fn lose(&mut self) {
        self.promoted.clear();
    }
}

/// From 8 to 31 pages, from the same place on.
#[test]
fn a_buffer_that_is_sent_in_ever_other_lengths_becomes_readable() {
    let mut world = World::default();
    for number in 0..2000usize {
        world.send(pages(100, 8 + number * 7 % 24));
    }
    assert!(world.direct > 1700, "{} of 2000", world.direct);
    assert!(world.vain < 40, "{}", world.vain);
    assert!(world.waited > 0);
}

/// Messages begin and end at another place each time.
#[test]
fn so_does_one_that_is_sent_in_ever_other_parts() {
    let mut world = World::default();
    for number in 0..3000usize {
        world.send(pages(100 + number * 5 % 12, 20 + number * 7 % 12));
    }
    assert!(world.direct > 2500, "{} of 3000", world.direct);
}

#[test]
fn one_long_message_does_not_keep_shorter_ones_from_it() {
    let mut world = World::default();
    world.send(pages(100, 2000));
    for number in 0..2000usize {
        world.send(pages(100, 8 + number * 7 % 24));
    }
    assert!(world.direct > 1200, "{} of 2000", world.direct);
}

#[test]
fn what_comes_once_is_never_asked_for() {
    let mut world = World::default();
    for number in 0..1000 {
        world.send(pages(100 + 30 * number, 30));
    }
    assert_eq!((world.promotions, world.direct, world.vain), (0, 0, 0));
}

#[test]
fn what_is_lost_is_tried_once() {
    let mut world = World::default();
    for number in 0..2000usize {
        world.send(pages(100, 8 + number * 7 % 24));
    }
    let vain = world.vain;
    world.lose();
    world.send(pages(100, 9));
    world.send(pages(100, 10));
    assert_eq!(world.vain, vain + 1);
}

#[test]
fn what_was_promoted_is_not_paid_for_again() {
    let (mut known, mut account) = (Extents::default(), Account::default());
    assert_eq!(known.new_bytes(pages(1, 10)), 10 * PAGE);
    known.were_read(&mut account, pages(1, 10), (10 * PAGE, 0));
    assert_eq!(known.new_bytes(pages(1, 20)), 10 * PAGE);
    assert_eq!(known.new_bytes(pages(1, 5)), 0);
    assert_eq!(known.new_bytes(pages(0, 5)), PAGE);
    assert_eq!(known.new_bytes(pages(11, 10)), 10 * PAGE, "behind it");
    known.were_read(&mut account, pages(11, 10), (10 * PAGE, 0));
    assert_eq!(known.new_bytes(pages(1, 20)), 10 * PAGE, "another extent");
    known.were_read(&mut account, pages(1, 20), (20 * PAGE, 0));
    assert_eq!(known.new_bytes(pages(1, 40)), 20 * PAGE);
}

#[test]
fn the_latest_are_kept() {
    let (mut known, mut account) = (Extents::default(), Account::default());
    for range in 0..=KEPT {
        known.were_read(&mut account, pages(range << 10, 10), (10 * PAGE, 0));
    }
    assert_eq!(known.new_bytes(pages(0, 10)), 10 * PAGE);
    assert_eq!(known.new_bytes(pages(KEPT << 10, 10)), 0);
    let last = Pages {
        start: usize::MAX - 5,
        end: usize::MAX,
    };
    assert_eq!(known.new_bytes(last), 5);
}

proptest! {
    /// Whatever is sent, and lost at whatever moment.
    #[test]
    fn promotions_never_take_longer_than_what_answers_for_them(
        messages in prop::collection::vec((0usize..200, 2usize..60, 0u8..200), 1..600),
    ) {
        let (mut world, mut is_lost) = (World::default(), false);
        for (start, count, loses) in messages {
            world.send(pages(start, count));
            if loses == 0 {
                world.lose();
                is_lost = true;
            }
            // What a promotion takes of pages that were lost meanwhile, the reader cannot know.
            let answers = world.saved + CREDIT;
            prop_assert!(is_lost || world.promotions <= answers, "{} > {answers}", world.promotions);
            prop_assert!(world.account.debt() <= CREDIT);
        }
    }
}

/// Where messages have ever other lengths, a longer one has no history of its own, either, however little of it was met.
#[test]
fn longer_messages_of_varying_memory_are_parts() {
    let mut world = World::default();
    world.send(pages(100, 8));
    assert!(world.extents.know(pages(100, 16)));
    assert!(!world.extents.know(pages(100, 100)), "met once");
    for number in 0..PARTS_OF_VARYING as usize {
        world.send(pages(100, 8 + number));
    }
    assert!(world.extents.know(pages(100, 100)));
    assert!(!world.extents.know(pages(1000, 100)), "other memory");
}

#[test]
fn the_latest_message_with_a_history_is_that_of_its_memory() {
    let mut extents = Extents::default();
    assert_eq!(extents.latest(pages(100, 8)), None);
    extents.meet(pages(100, 8), (100 * PAGE + 16, 5000));
    extents.meet(pages(500, 8), (500 * PAGE, 6000));
    extents.meet(pages(100, 9), (100 * PAGE, 7000));
    assert_eq!(extents.latest(pages(104, 8)), Some((100 * PAGE, 7000)));
    assert_eq!(extents.latest(pages(500, 1)), Some((500 * PAGE, 6000)));
    assert_eq!(extents.latest(pages(900, 8)), None);
}

/// Messages become longer and longer: a message that has most of all, but little of what is new, is not what was asked for.
#[test]
fn only_what_is_new_is_asked_for() {
    let mut world = World::default();
    for number in 0..4000usize {
        // Up to 16 pages, and up to twice as many later.
        let most = if number < 1000 { 16 } else { 32 };
        world.send(pages(100, most / 2 + number * 7 % (most / 2 + 1)));
    }
    let direct = world.direct;
    for number in 0..100usize {
        world.send(pages(100, 16 + number * 7 % 17));
    }
    assert!(
        world.direct >= direct + 90,
        "{} of 100 are read directly",
        world.direct - direct
    );
    let all = pages(1, 20);
    assert_eq!(all.without(pages(1, 5)), pages(6, 15));
    assert_eq!(all.without(pages(10, 20)), pages(1, 9));
    assert_eq!(all.without(pages(5, 5)), all);
    assert_eq!(all.without(pages(0, 40)), all);
    assert_eq!(all.without(Pages::default()), all);
}

/// Requests for short messages may stay without an answer; longer ones of the same memory have theirs.
#[test]
fn who_asks_in_vain_asks_again_for_longer_messages() {
    let mut world = World::default();
    let send = |world: &mut World, most: usize| {
        for number in 0..1000usize {
            world.send(pages(100, most / 2 + number * 7 % (most / 2 + 1)));
        }
    };
    world.promotes_nothing_below = 16;
    send(&mut world, 8);
    let asked = world.requests;
    assert!((1..=4).contains(&asked), "{asked} requests");
    send(&mut world, 10);
    assert!(world.requests <= 4, "{} requests", world.requests);
    assert_eq!((world.promotions, world.direct), (0, 0));
    send(&mut world, 64);
    assert!(
        world.direct > 800,
        "{} of 1000 are read directly",
        world.direct
    );
}

/// Messages become longer, as in a sweep over sizes. Where a promotion has paid, the next one need not miss as much; where it has not, it
/// must.
#[test]
fn what_has_paid_is_trusted_with_longer_messages() {
    /// How many messages of so many pages, or one less, it takes until something more is promoted.
    fn missed(world: &mut World, most: usize) -> usize {
        let before = world.promotions;
        let is_promoted = |number: &usize| {
            world.send(pages(100, most - number % 2));
            world.promotions != before
        };
        (0..1000).find(is_promoted).expect("a promotion")
    }
    let mut world = World::default();
    let first = missed(&mut world, 16);
    for number in 0..200usize {
        world.send(pages(100, 16 - number % 2));
    }
    let second = missed(&mut world, 32);
    for number in 0..200usize {
        world.send(pages(100, 32 - number % 2));
    }
    let third = missed(&mut world, 64);
    assert!(second < first, "{first}, then {second} before a promotion");
    assert!(third < second, "{second}, then {third}");
    // That one has not paid yet.
    let fourth = missed(&mut world, 128);
    assert!(fourth > third, "{third}, then {fourth}");
}

/// Who exchanges messages gains by a direct copy only where the other one's is direct, too.
#[test]
fn what_a_peer_has_had_promoted_here_is_asked_for_of_its_memory() {
    /// After how many messages of 31 or 32 pages the first promotion is asked for.
    fn messages(promoted_for_peer: usize) -> usize {
        let mut world = World::default();
        for number in 0..1000usize {
            if number == 5 {
                let bytes = (promoted_for_peer * PAGE) as u64;
                world.account.note_parts_promoted_for_peers(bytes);
            }
            world.send(pages(100, 32 - number % 2));
            if world.requests > 0 {
                return number;
            }
        }
        1000
    }
    let alone = messages(0);
    assert!((10..1000).contains(&alone), "{alone}");
    assert_eq!(messages(32), 5);
    // Less than half of it, and it has to earn its promotion.
    assert_eq!(messages(15), alone);
}

/// A buffer that grows is moved to other memory each time (realloc), and what was promoted for it is lost. `grows_after` so many messages.
fn growing(grows_after: usize) -> World {
    let mut world = World::default();
    for number in 0..2000usize {
        let place = 1000 * (1 + number / grows_after);
        world.send(pages(place, 32 + number * 7 % 32));
    }
    world
}

#[test]
fn what_was_not_repaid_is_spent_ever_more_rarely() {
    let short = growing(24);
    let least = price(32 * PAGE);
    assert!(
        (least..3 * least).contains(&short.promotions),
        "{} of {least} each, {} saved",
        short.promotions,
        short.saved
    );
    let long = growing(500);
    assert!(
        long.saved > 2 * long.promotions && long.direct > 1000,
        "{} saved by {}, {} direct",
        long.saved,
        long.promotions,
        long.direct
    );
}

/// What earlier runs have shown is enough, but this run's promotions at the first send save next to nothing.
#[test]
fn at_once_and_in_vain_counts_for_the_next_run() {
    let mut world = World::default();
    world.account.begin_with(
        Paid {
            bytes: 128 << 10,
            parts: Worth {
                potential: 40_000,
                price: 10_000,
                ..Worth::default()
            },
            ..Paid::default()
        },
        CREDIT,
    );
    for number in 0..6usize {
        world.send(pages(100, 32 + number % 2));
    }
    let paid = world.account.paid().find(|paid| paid.bytes == 128 << 10);
    let parts = paid.expect("the class").parts;
    assert!(world.promotions > 0, "nothing was promoted at once");
    assert!(
        parts.tried > 0 && parts.kept > 0 && parts.kept < parts.tried,
        "{parts:?}"
    );
}

/// Shorter messages came before, of which nothing is to be decided for some time. What earlier runs have shown of longer ones holds from the
/// first of these on, and what promoting them costs counts for the runs after this one.
#[test]
fn longer_messages_than_all_before_are_looked_at_anew() {
    const LONGER: usize = 16 * PAGE;
    let program = |earlier: Option<Worth>| {
        let mut world = World::default();
        if let Some(parts) = earlier {
            let paid = Paid {
                bytes: LONGER,
                parts,
                ..Paid::default()
            };
            world.account.begin_with(paid, u64::MAX);
        }
        for number in 0..14usize {
            world.send(pages(100, 8 + number * 5 % 8));
        }
        let requests = world.requests;
        world.send(pages(100, 30));
        let is_asked = world.requests > requests;
        let mut paid = world.account.paid();
        let worth = paid
            .find(|paid| paid.bytes == LONGER)
            .map(|paid| paid.parts);
        (is_asked, worth.expect("the class"))
    };
    let (is_asked, worth) = program(None);
    assert!(!is_asked && worth.price > 0, "{worth:?}");
    let paying = Worth {
        potential: 100 * worth.price,
        price: 2 * worth.price,
        ..Worth::default()
    };
    assert!(program(Some(paying)).0);
}
