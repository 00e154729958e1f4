//! Cron expressions, judged by others: see oracle.py, which made the cases. A few stand in a file beside it;
//! `make test-rules` draws others, which DQ_RULES names.

use dq::queue::recurring::cron::Cron;
use dq::queue::recurring::zone::Zone;
use dq::zones::Zones;

/// One line: how often an expression comes between two seconds, and when.
struct Case<'a> {
    zone: &'a str,
    expression: String,
    first: u64,
    last: u64,
    count: u64,
    sum: u64,
    some: Vec<u64>,
}

fn read(line: &str) -> Case<'_> {
    let number = |text: &str| text.parse::<u64>().expect(line);
    let fields: Vec<&str> = line.split('\t').collect();
    let [zone, expression, first, last, count, sum, some] = fields[..] else {
        panic!("not a case: {line}");
    };
    Case {
        zone,
        expression: expression.replace("\\t", "\t"),
        first: number(first),
        last: number(last),
        count: number(count),
        sum: number(sum),
        some: some
            .split(',')
            .filter(|it| !it.is_empty())
            .map(number)
            .collect(),
    }
}

/// Seconds at which it comes.
fn comes(cron: &Cron, zone: &dyn Zone, first: u64, last: u64) -> Vec<u64> {
    let mut at = first * 1000 - 1;
    let instants = std::iter::from_fn(|| {
        at = cron.next_after(at, zone)?;
        Some(at / 1000)
    });
    instants.take_while(|&second| second <= last).collect()
}

/// What is wrong with a case, if anything is.
fn judge(case: &Case<'_>, zones: &mut Zones) -> Option<String> {
    let zone = zones.get(case.zone).expect("a zone that is built in");
    let cron = match Cron::parse(case.expression.as_bytes()) {
        Ok(cron) => cron,
        Err(error) => return Some(error.to_string()),
    };
    let come = comes(&cron, &*zone, case.first, case.last);
    let figures = (come.len() as u64, come.iter().sum::<u64>());
    let some = &come[..come.len().min(case.some.len())];
    (figures != (case.count, case.sum) || some != case.some).then(|| {
        format!(
            "comes {} times, at {:?}",
            figures.0,
            &come[..come.len().min(6)]
        )
    })
}

fn judge_all(text: &str) -> u64 {
    let mut zones = Zones::built_in();
    let (mut cases, mut wrong) = (0, Vec::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        cases += 1;
        wrong.extend(judge(&read(line), &mut zones).map(|what| format!("{line}\n  {what}")));
    }
    let some = wrong.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {cases}:\n{some}", wrong.len());
    cases
}

#[test]
fn expressions_come_when_others_say() {
    assert!(judge_all(include_str!("cases.txt")) >= 200);
}

#[test]
fn so_do_those_drawn_anew() {
    // Made by `make test-rules`, which takes a few minutes.
    let Some(path) = std::env::var_os("DQ_RULES") else {
        return;
    };
    let text = std::fs::read_to_string(path).expect("the cases");
    let cases = judge_all(&text);
    println!("{cases} cases: no difference");
    assert!(cases > 0);
}

/// One that is wrong is noticed: the rule comes a minute late, or the zone is another.
#[test]
fn what_is_wrong_is_noticed() {
    let line = "Europe/Berlin\t30 2 * * *\t1711800000\t1711900000\t1\t1711846800\t1711846800";
    let mut zones = Zones::built_in();
    let right = read(line);
    assert_eq!(judge(&right, &mut zones), None);
    for wrong in [
        Case {
            zone: "UTC",
            ..read(line)
        },
        Case {
            expression: "31 3 * * *".into(),
            ..read(line)
        },
        Case {
            sum: right.sum + 60,
            ..read(line)
        },
        Case {
            some: vec![right.sum + 60],
            ..read(line)
        },
    ] {
        assert!(judge(&wrong, &mut zones).is_some());
    }
}
