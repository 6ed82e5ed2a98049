//! What earlier runs have shown promotions at the first send to be worth, by class of lengths.

/// One part in so many of what the reader's copies save is gained elsewhere besides: Sendrecv of 4 MiB took 0.26 ms less where each
/// side's copy took 0.15 to 0.2 ms less, windows of 8 KiB 3 µs less a message where the copy took 2 less.
const UNSEEN: u64 = 3;
/// Where they would not have, so many times the usual wait is the longest. The usual one is no choice: who waits as long as a promotion
/// is worth and sends no more than a quarter as many messages then has lost nearly all of its price.
const MOST_PATIENCE: u64 = 16;
/// One part in so many of what earlier runs have shown counts beside what this run shows.
const REMEMBERED: u64 = 2;
/// Promotions at the first send that have saved less than one part in so many of what they cost were in vain. The reader's own account is
/// no closer: MPICH's ping-pong of 1 to 4 MiB is a sixth faster by promotions that have saved 0.44 of their cost by it.
const IN_VAIN: u64 = 4;
/// No more are made until what those cost, of which each run remembers half, is one part in so many of what promoting each buffer would
/// cost: some four runs.
const FORGIVEN: u64 = 16;

/// Where buffers leave one part in so many of the price unpaid, they are not alike. HPCC's rings of 2 MB would save ten times what all of
/// that length cost; its FFT took half as long again by promotions at the first send (docs/results.md, programs of others).
const MIXED: u64 = 8;

/// What direct copies of all messages would have saved, and what promoting each buffer at its first send would have cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Worth {
    /// The former.
    pub potential: u64,
    /// The latter; 0: nothing was seen.
    pub price: u64,
    /// What promotions at the first send have cost that were made for it, and what copies of these buffers saved.
    pub tried: u64,
    /// See `tried`.
    pub kept: u64,
    /// Of `price`, what buffers have not saved each by itself: what promotions at the first send would lose on those that are sent too
    /// seldom, however much others save. Of buffers with a history of their own.
    pub deficit: u64,
}

/// What earlier runs say of a class of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// Nothing.
    None,
    /// Promote at the first send.
    AtOnce,
    /// Some buffers pay and others do not: wait as long as usual.
    Mixed,
    /// Wait so many times as long as usual.
    Wait(u64),
}

impl Worth {
    pub(super) fn advice(self) -> Advice {
        let (saved, price) = (in_all(self.potential), self.price);
        match () {
            () if price == 0 => Advice::None,
            // What all messages would gain is not what the promoted ones did.
            () if self.were_in_vain() => Advice::Wait(patience(self.tried, in_all(self.kept))),
            // No margin: where both are equal waiting gains no more, and a promotion where the run is longer than earlier ones.
            () if saved >= price => match self.deficit.saturating_mul(MIXED) > price {
                true => Advice::Mixed,
                false => Advice::AtOnce,
            },
            () => Advice::Wait(patience(price, saved)),
        }
    }

    fn were_in_vain(self) -> bool {
        let is_recent = self.tried.saturating_mul(FORGIVEN) >= self.price;
        is_recent && self.kept.saturating_mul(IN_VAIN) < self.tried
    }

    /// The half of it that the next run remembers.
    pub(super) fn fade(self) -> Self {
        let of = |ticks: u64| ticks / REMEMBERED;
        Self {
            potential: of(self.potential),
            price: of(self.price),
            tried: of(self.tried),
            kept: of(self.kept),
            deficit: of(self.deficit),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            potential: self.potential.saturating_add(other.potential),
            price: self.price.saturating_add(other.price),
            tried: self.tried.saturating_add(other.tried),
            kept: self.kept.saturating_add(other.kept),
            deficit: self.deficit.saturating_add(other.deficit),
        }
    }

    /// What direct copies of a buffer save in a run, on the average, if its promotion takes so long.
    pub(super) fn of_a_buffer(self, price: u64) -> u64 {
        let saved =
            u128::from(price) * u128::from(in_all(self.potential)) / u128::from(self.price.max(1));
        u64::try_from(saved).unwrap_or(u64::MAX)
    }
}

/// What the program has saved. The reader times its own copies; who waits for the slower of two gains more.
pub(super) fn in_all(saved: u64) -> u64 {
    saved.saturating_add(saved / UNSEEN)
}

/// How many times as long as usual to wait where a promotion costs so much and saves so much.
fn patience(price: u64, saved: u64) -> u64 {
    (price / saved.max(1)).clamp(2, MOST_PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::super::{Account, Buffer, Credit, KernelCopy, Paid, Urgency};
    use super::*;

    const MOST: u64 = 5_000;
    const ALLOWED: Credit = Credit {
        usual: MOST,
        adopted: MOST,
        known: MOST,
        together: 0,
    };

    /// What earlier runs have shown of 64 KiB.
    fn shown(potential: u64, price: u64) -> Paid {
        Paid {
            bytes: 65536,
            worth: Worth {
                potential,
                price,
                ..Worth::default()
            },
            ..Paid::default()
        }
    }

    /// A run with one buffer, whose promotion takes 1000 and whose direct copies, so many, save 100 each. What the class has come to,
    /// earlier runs included, and when it was asked for.
    fn run_after(earlier: Paid, direct: u32) -> (Paid, Option<u32>) {
        let mut account = Account::default();
        account.begin_with(earlier, MOST);
        let mut buffer = Buffer::default();
        let copy = |is_first| KernelCopy {
            bytes: earlier.bytes,
            gain: 100,
            is_first,
            price: 1000,
            credit: ALLOWED,
            ..KernelCopy::default()
        };
        let asked = (0..40)
            .find(|&read| buffer.read_by_kernel(&mut account, copy(read == 0), Urgency::Unknown));
        for _ in 0..direct {
            buffer.read_directly(&mut account, earlier.bytes, 100, || 1000);
        }
        let paid = account.paid().find(|paid| paid.bytes == earlier.bytes);
        (paid.expect("the class"), asked)
    }

    #[test]
    fn promotions_at_the_first_send_that_did_not_pay_are_not_made_again_for_some_runs() {
        let earlier = shown(8000, 4000);
        let (paid, asked) = run_after(earlier, 2);
        assert_eq!(
            (asked, paid.worth.tried, paid.worth.kept),
            (Some(0), 1000, 200)
        );
        let (mut paid, asked) = run_after(paid, 2);
        assert!(asked.is_none_or(|read| read > 10), "{asked:?}");
        let mut runs = 1;
        loop {
            let asked;
            (paid, asked) = run_after(paid, 0);
            if asked == Some(0) {
                break;
            }
            runs += 1;
            assert!(runs < 10, "{paid:?}");
        }
        assert!(runs >= 3, "{runs}");
    }

    /// However much some buffers save: where others are sent too seldom, each waits as in a first run.
    #[test]
    fn buffers_that_are_not_alike_wait_as_long_as_usual() {
        let mut account = Account::default();
        for sends in [100, 100, 3, 3] {
            let mut buffer = Buffer::default();
            for read in 0..sends {
                let copy = KernelCopy {
                    bytes: 65536,
                    gain: 100,
                    is_first: read == 0,
                    price: 1000,
                    credit: Credit::default(),
                    ..KernelCopy::default()
                };
                buffer.read_by_kernel(&mut account, copy, Urgency::Earned);
            }
        }
        let paid = account.paid().find(|paid| paid.bytes == 65536);
        let worth = paid.expect("the class").worth;
        // Two copies of the latter two would have saved a third more than they are timed to.
        assert_eq!((worth.price, worth.deficit), (4000, 2 * (1000 - 2 * 133)));
        let (_, asked) = run_after(
            Paid {
                bytes: 65536,
                worth,
                ..Paid::default()
            },
            0,
        );
        assert!(asked.is_some_and(|read| read >= 10), "{asked:?}");
        let alike = Worth {
            deficit: worth.price / 10,
            ..worth
        };
        let (_, asked) = run_after(
            Paid {
                bytes: 65536,
                worth: alike,
                ..Paid::default()
            },
            0,
        );
        assert_eq!(asked, Some(0));
    }

    /// Memory whose messages have ever other bounds is promoted at once where earlier runs have shown that that saves twice what it costs.
    /// Where they have shown that less is saved, it waits until the run is longer than those were, and a promotion's price more was missed.
    #[test]
    fn what_is_to_be_earned_must_pay_by_what_comes_after() {
        let asked = |potential| {
            let mut account = Account::default();
            let worth = Worth {
                potential,
                price: 4000,
                ..Worth::default()
            };
            account.begin_with(
                Paid {
                    bytes: 65536,
                    parts: worth,
                    ..Paid::default()
                },
                MOST,
            );
            let mut buffer = Buffer::of_parts();
            (0..100).find(|&read| {
                let copy = KernelCopy {
                    bytes: 65536,
                    gain: 100,
                    is_first: read == 0,
                    price: 1000,
                    credit: ALLOWED,
                    ..KernelCopy::default()
                };
                buffer.read_by_kernel(&mut account, copy, Urgency::Earned)
            })
        };
        // In all 1.33, 1.67 and 2 of its price, as the program sees it.
        let [hardly, little, enough] = [4000, 5000, 6000].map(asked);
        assert_eq!(enough, Some(0));
        assert!(
            hardly.is_some_and(|read| (23..28).contains(&read)),
            "{hardly:?}"
        );
        assert!(
            little.is_some_and(|read| (26..31).contains(&read)),
            "{little:?}"
        );
    }

    /// UCX reads in segments of 512 KiB: the last one's length is another one each time, the others' is not.
    #[test]
    fn messages_of_ever_other_bounds_and_others_do_not_speak_for_each_other() {
        let pays = Worth {
            potential: 8000,
            price: 1000,
            ..Worth::default()
        };
        let is_in_vain = Worth {
            potential: 0,
            ..pays
        };
        let copy = KernelCopy {
            bytes: 65536,
            gain: 100,
            is_first: false,
            price: 1000,
            credit: ALLOWED,
            ..KernelCopy::default()
        };
        let kinds = [
            (Buffer::default(), Urgency::Unknown),
            (Buffer::of_parts(), Urgency::Earned),
        ];
        for pays_for in 0..2 {
            for (kind, (mut buffer, urgency)) in kinds.into_iter().enumerate() {
                let mut account = Account::default();
                let [worth, parts] =
                    [0, 1].map(|of| if of == pays_for { pays } else { is_in_vain });
                let earlier = Paid {
                    bytes: copy.bytes,
                    worth,
                    parts,
                    ..Paid::default()
                };
                account.begin_with(earlier, MOST);
                assert!(account.pays_at_once(copy.bytes));
                let is_asked_for = buffer.read_by_kernel(&mut account, copy, urgency);
                assert_eq!(is_asked_for, kind == pays_for, "{kind} {pays_for}");
                // What it shows is of its kind, also once something has come or was lost.
                buffer.came(&mut account, copy.bytes);
                buffer.begin_anew();
                buffer.lost();
                buffer.read_directly(&mut account, copy.bytes, 5000, || 0);
                let paid = account.paid().next().expect("the class");
                let shown = [paid.worth, paid.parts].map(|worth| worth.potential);
                let mut expected = [0; 2];
                expected[pays_for] += pays.potential / REMEMBERED;
                expected[kind] += 5100;
                assert_eq!(shown, expected);
            }
        }
    }

    /// A run that meets more buffers than those that is remembered of was started with other parameters: each is sent less often then.
    #[test]
    fn what_few_buffers_have_shown_does_not_speak_for_many() {
        let earlier = shown(16_000, 8000);
        let mut account = Account::default();
        account.begin_with(earlier, MOST);
        // It remembers four buffers' price, which eight may have had, and up to twelve are believed to have.
        let asked = (0..100).map(|_| {
            let copy = KernelCopy {
                bytes: earlier.bytes,
                gain: 100,
                is_first: true,
                price: 1000,
                credit: Credit {
                    known: 100_000,
                    ..ALLOWED
                },
                ..KernelCopy::default()
            };
            Buffer::default().read_by_kernel(&mut account, copy, Urgency::Unknown)
        });
        let asked: Vec<bool> = asked.collect();
        assert!(asked[..12].iter().all(|&it| it), "{asked:?}");
        assert!(!asked[12..].contains(&true), "{asked:?}");
    }

    /// Buffers that were met before the process's first promotion would not all have cost what that one does.
    #[test]
    fn that_the_first_promotion_takes_longer_counts_for_one_of_them() {
        let mut account = Account::default();
        let mut buffers = [Buffer::default(); 8];
        let copy = KernelCopy {
            bytes: 65536,
            gain: 100,
            price: 1000,
            first: 700,
            credit: ALLOWED,
            ..KernelCopy::default()
        };
        let price = |account: &Account| {
            let paid = account.paid().next().expect("the class");
            paid.worth.price
        };
        for buffer in &mut buffers {
            let is_first = KernelCopy {
                is_first: true,
                ..copy
            };
            assert!(!buffer.read_by_kernel(&mut account, is_first, Urgency::Unknown));
        }
        assert_eq!(price(&account), 8000);
        let asks = (0..3).any(|_| buffers[0].read_by_kernel(&mut account, copy, Urgency::Forced));
        assert_eq!((asks, price(&account)), (true, 8700));
        buffers[0].read_directly(&mut account, copy.bytes, 100, || 1500);
        assert_eq!(price(&account), 8500, "what it took counts in its place");
    }

    #[test]
    fn promotions_at_the_first_send_that_paid_are_made_again() {
        let mut paid = shown(8000, 4000);
        for run in 0..5 {
            let asked;
            (paid, asked) = run_after(paid, 20);
            assert_eq!(asked, Some(0), "run {run}");
            assert!(paid.worth.kept >= paid.worth.tried, "{paid:?}");
        }
    }
}
