//! RATE and COST, of the queue and of a group: the deliveries in any window cost no more than it allows, wherever in their milliseconds they were;
//! only a single one may cost more. A restart empties the window.

use std::collections::{BTreeMap, VecDeque};

use super::check::{Rule, Verdict};
use super::story::{Handed, Stories, Story};

type Served<'a, 's> = (&'s Story<'a>, &'s Handed<'a>);

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    for (queue, jobs) in stories.by_queue() {
        let bounds = stories.bounds_of(queue);
        check_rate(jobs.iter().copied(), bounds.rate, verdict);
        let own = |story: &&Story<'_>| bounds.own_of(story.group()).rate == bounds.own.rate;
        check_rate(jobs.iter().copied().filter(own), bounds.own.rate, verdict);
    }
}

fn check_rate<'a: 's, 's>(
    jobs: impl Iterator<Item = &'s Story<'a>>,
    rate: (u64, u64),
    verdict: &mut Verdict,
) {
    if rate.0 == 0 {
        return;
    }
    let mut lives: BTreeMap<usize, Vec<Served<'_, '_>>> = BTreeMap::new();
    for story in jobs {
        for handed in &story.leases {
            let life = lives.entry(handed.entry.life).or_default();
            life.push((story, handed));
        }
    }
    for served in lives.values_mut() {
        served.sort_by_key(|(_, handed)| handed.token());
        check_life(served, rate, verdict);
    }
}

fn check_life(served: &[Served<'_, '_>], (most, window_ms): (u64, u64), verdict: &mut Verdict) {
    let mut within: VecDeque<(u64, u64)> = VecDeque::new();
    let mut sum = 0;
    for (story, handed) in served {
        let (now_ms, cost) = (handed.now_ms(), least_cost(story, handed));
        while let Some(&(at, left)) = within.front() {
            if now_ms < at + window_ms {
                break;
            }
            within.pop_front();
            sum -= left;
        }
        verdict.tally.windows += u64::from(!within.is_empty());
        if !within.is_empty() && sum + cost > most {
            let text = format!("of cost {cost} came beside {sum} of {most} in the window");
            verdict.fault_of(story, Rule::Window, &text);
        }
        within.push_back((now_ms, cost));
        sum += cost;
    }
}

/// The least cost that the delivery may have counted, as a TOUCH may have lowered it.
fn least_cost(story: &Story<'_>, handed: &Handed<'_>) -> u64 {
    let touched = story.touches().filter_map(|(_, touch)| {
        let cost = touch.cost.filter(|_| story.is_meant(&touch.claim, handed));
        cost.map(u64::from)
    });
    touched.fold(u64::from(story.add.cost), u64::min)
}
