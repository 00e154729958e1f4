use super::*;
use crate::queue::clock::Mint;

const RATE: Rate = Rate {
    count: 10,
    window_ms: 10,
};

fn token(us: u64) -> u64 {
    Now::from_us(us).first_token()
}

fn delivered(us: u64, weight: u32) -> Delivered {
    Delivered {
        token: token(us),
        weight,
    }
}

/// A window as it is defined: all deliveries, each with its instant and its weight.
#[derive(Default)]
struct Naive(Vec<(u64, u64)>);

impl Naive {
    fn cost_at(&self, rate: Rate, us: u64) -> u64 {
        let inside = self.0.iter().filter(|&&(at, _)| us < at + rate.window_us());
        inside.map(|&(_, weight)| weight).sum()
    }

    fn opens_us(&self, rate: Rate, weight: u32, now: u64) -> u64 {
        let may_stay = u64::from(rate.count.saturating_sub(weight));
        let leaves = self.0.iter().map(|&(at, _)| at + rate.window_us());
        let mut instants: Vec<u64> = leaves.filter(|&us| us > now).chain([now]).collect();
        instants.sort_unstable();
        let fits = |us: &u64| self.cost_at(rate, *us) <= may_stay;
        instants.into_iter().find(fits).unwrap()
    }
}

fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[test]
fn a_window_is_what_a_list_of_all_deliveries_says() {
    for seed in 1..=200 {
        let mut random = {
            let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed);
            move |below| random(&mut state) % below
        };
        let count = 1 + random(30) as u32;
        let rate = Rate { count, ..RATE };
        let (mut window, mut all) = (Deliveries::new(), Naive::default());
        let (mut us, is_weighed) = (1_000_000, seed % 3 > 0);
        for _ in 0..400 {
            us += random(3000);
            let (now, weight) = (
                Now::from_us(us),
                1 + random(if is_weighed { 40 } else { 1 }) as u32,
            );
            let opens = window.opens_us(rate, weight, now);
            assert_eq!(opens.max(us), all.opens_us(rate, weight, us), "seed {seed}");
            if opens <= us {
                window.record(rate, ENTRIES, delivered(us, weight), now);
                all.0.push((us, weight.into()));
            }
            if is_weighed && random(5) == 0 && !all.0.is_empty() {
                let (at, weight) = (random(all.0.len() as u64) as usize, 1 + random(50) as u32);
                let of = all.0[at].0;
                let is_alone = all.0.iter().filter(|it| it.0 == of).count() == 1;
                if is_alone && of + rate.window_us() > us {
                    window.reweigh(token(of), weight);
                    all.0[at].1 = weight.into();
                }
            }
        }
    }
}

#[test]
fn what_weighs_more_than_all_goes_where_nothing_is() {
    let mut window = Deliveries::new();
    assert_eq!(window.opens_us(RATE, 1000, Now::from_us(1)), 0);
    window.record(RATE, ENTRIES, delivered(1000, 1000), Now::from_us(1000));
    for weight in [1, 10, 1000] {
        assert_eq!(window.opens_us(RATE, weight, Now::from_us(2000)), 11_000);
    }
}

#[test]
fn a_window_without_weights_holds_instants_alone() {
    let mut window = Deliveries::new();
    for us in (0..100_000).step_by(1000) {
        window.record(RATE, ENTRIES, delivered(us, 1), Now::from_us(us));
    }
    assert!(matches!(&window, Deliveries::Plain(recent) if recent.len() <= RATE.count as usize));
}

#[test]
fn more_than_are_told_apart_count_later_and_never_less() {
    let rate = Rate {
        count: 1_000_000,
        window_ms: 1000,
    };
    let most = 64;
    let (mut window, mut all) = (Deliveries::new(), Naive::default());
    for us in (0..1_900_000).step_by(700) {
        let now = Now::from_us(us);
        window.record(rate, most, delivered(us, 1 + (us % 5) as u32), now);
        all.0.push((us, 1 + us % 5));
        let weight = rate.count - 1000;
        assert!(window.opens_us(rate, weight, now).max(us) >= all.opens_us(rate, weight, us));
        assert!(
            window.memory_bytes() < 64 * most,
            "no more than are told apart"
        );
    }
    assert!(window.opens_us(rate, rate.count, Now::from_us(3_000_000)) <= 3_000_000);
}

#[test]
fn no_window_holds_more_than_its_count_when_the_clock_steps_back() {
    let rate = Rate { count: 3, ..RATE };
    let mut window = Deliveries::new();
    for us in [200_000, 200_370, 200_740] {
        window.record(rate, ENTRIES, delivered(us, 1), Now::from_us(us));
    }
    let stepped_back = Now::from_us(1000);
    assert_eq!(window.opens_us(rate, 1, stepped_back), 11_000);
    assert_eq!(window.opens_us(rate, 1, Now::from_us(300_000)), 210_000);
}

/// More deliveries at once than a microsecond has tokens: each is found by its own token, and takes no more memory.
#[test]
fn many_at_once_are_told_apart() {
    let rate = Rate {
        count: 100_000,
        window_ms: 1000,
    };
    let now = Now::from_us(7_000_123);
    let (mut mint, mut deliveries) = (Mint::new(), Deliveries::new());
    let tokens: Vec<u64> = (0..5000).map(|_| mint.next_token(now, 0)).collect();
    for &token in &tokens {
        deliveries.record(rate, ENTRIES, Delivered { token, weight: 1 }, now);
    }
    assert!(deliveries.memory_bytes() <= 8192 * size_of::<u64>());
    for (number, &token) in tokens.iter().enumerate() {
        assert!(deliveries.reweigh(token, 2 + number as u32 % 3), "{number}");
    }
    let Deliveries::Weighed(weighed) = &deliveries else {
        panic!("weights are not kept");
    };
    let total: u32 = (0..5000).map(|number| 2 + number % 3).sum();
    assert_eq!(
        weighed.last_to_leave(
            Rate {
                count: total,
                ..rate
            },
            1
        ),
        Some(7_000_123)
    );
    assert_eq!(
        weighed.last_to_leave(
            Rate {
                count: total + 1,
                ..rate
            },
            1
        ),
        None
    );
}

/// After the clock was set back, tokens no longer tell what it showed; each delivery is found all the same.
#[test]
fn deliveries_are_found_though_the_clock_stepped_back() {
    let rate = Rate {
        window_ms: 1000,
        ..RATE
    };
    let (mut mint, mut deliveries) = (Mint::new(), Deliveries::new());
    let mut tokens = Vec::new();
    for us in [9_000_000, 9_000_000, 8_000_000, 8_000_000, 8_000_001] {
        let now = Now::from_us(us);
        let token = mint.next_token(now, 0);
        deliveries.record(rate, ENTRIES, Delivered { token, weight: 1 }, now);
        tokens.push(token);
    }
    assert_eq!(
        deliveries.opens_us(rate, 6, Now::from_us(8_000_001)),
        9_000_000
    );
    assert!(tokens.iter().all(|&token| deliveries.reweigh(token, 2)));
    assert!(tokens.iter().all(|&token| !deliveries.reweigh(token, 2)));
    assert!(!deliveries.reweigh(tokens[0] + 4, 2));
}

/// With very many deliveries, a window never allows more than it may, and hardly less; and it takes no more memory.
#[test]
fn more_than_are_told_apart_count_together() {
    const MOST: usize = 100;
    let rate = Rate {
        count: 1000,
        window_ms: 50,
    };
    let (mut deliveries, mut all, mut mint) = (Deliveries::new(), Vec::new(), Mint::new());
    for us in (1_000_000..1_400_000).step_by(13) {
        let now = Now::from_us(us);
        if deliveries.opens_us(rate, 1, now) <= us {
            let token = mint.next_token(now, 0);
            deliveries.record(rate, MOST, Delivered { token, weight: 1 }, now);
            all.push(us);
        }
        let Deliveries::Weighed(weighed) = &deliveries else {
            assert!(all.len() <= MOST);
            continue;
        };
        assert!(weighed.len() <= MOST);
    }
    let most_in_a_window = all.windows(1001).map(|it| it[1000] - it[0]).min();
    assert!(most_in_a_window.is_some_and(|us| us >= 50_000));
    assert!(
        all.len() > 8 * 1000 * 19 / 20,
        "only {} were let go",
        all.len()
    );
}

#[test]
fn plain_windows_come_back() {
    let rate = RATE;
    let mut deliveries = Deliveries::new();
    let at = |us| Now::from_us(us);
    deliveries.record(
        rate,
        ENTRIES,
        Delivered {
            token: 0,
            weight: 3,
        },
        at(1_000_000),
    );
    assert!(matches!(deliveries, Deliveries::Weighed(_)));
    deliveries.record(
        rate,
        ENTRIES,
        Delivered {
            token: 0,
            weight: 1,
        },
        at(1_005_000),
    );
    assert!(matches!(deliveries, Deliveries::Weighed(_)));
    deliveries.record(
        rate,
        ENTRIES,
        Delivered {
            token: 0,
            weight: 1,
        },
        at(1_015_000),
    );
    assert!(matches!(deliveries, Deliveries::Plain(_)));
}
