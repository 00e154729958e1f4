//! DQ.FORECAST.

use crate::probe::Probe;

const OUT_OF_RANGE: &str = "-ERR value is not an integer or out of range";
const ARITY: &str = "-ERR wrong number of arguments for 'dq.forecast' command";

#[test]
fn counts_delayed_and_ready_jobs_by_due() {
    let mut p = Probe::start();
    for (id, rest) in [
        ("a", "AT 1000"),
        ("b", "AT 1003"),
        ("c", "AT 1004 PRIORITY 7"),
        ("d", "AT 1009 PRIORITY -7"),
        ("e", "AT 1010"),
        ("last", "AT 4398046511103"),
        ("far", "AT 4102444800000"),
        ("farther", "AT 4102444800001 PRIORITY 2147483647"),
        // Neither delayed nor ready.
        ("reserved", "AT 1001 PRIORITY -9"),
        ("dead", "AT 1002 PRIORITY -8"),
    ] {
        p.run(&format!("DQ.ADD q {id} x {rest}"));
    }
    p.run("DQ.POP q COUNT 2");
    p.run("DQ.NACK q dead FATAL");
    // Parts begin at 1000, 1003 and 1006.
    p.all_unseen(
        "DQ.FORECAST q FROM 1000 TO 1010 BUCKETS 3 -> [ 1 2 1 ]
        DQ.FORECAST q FROM 1000 TO 1010 BUCKETS 1 -> [ 4 ]
        DQ.FORECAST q FROM 1001 TO 1011 BUCKETS 1 -> [ 4 ]
        DQ.FORECAST q FROM 1010 TO 1011 BUCKETS 1 -> [ 1 ]
        DQ.FORECAST q FROM 1003 TO 1005 BUCKETS 4 -> [ 0 1 0 1 ]
        DQ.FORECAST q FROM 0 TO 4398046511103 BUCKETS 1 -> [ 7 ]
        DQ.FORECAST q buckets 2 to 4102444800002 From 4102444800000 -> [ 1 1 ]
        DQ.FORECAST q FROM 4398046511102 TO 4398046511103 BUCKETS 1 -> [ 0 ]
        DQ.FORECAST none FROM 1 TO 2 BUCKETS 4 -> [ 0 0 0 0 ]",
    );
    p.says3("DQ.FORECAST q FROM 1000 TO 1010 BUCKETS 3", "[ 1 2 1 ]");
    let all = p.ask("DQ.FORECAST q FROM 1000 TO 11000 BUCKETS 10000");
    let counts: Vec<&str> = all.split(' ').collect();
    assert_eq!(counts.len(), 10_002);
    let at = |part: usize| counts[1 + part];
    let expected = [0, 3, 4, 9, 10].map(|part| (part, "1"));
    assert!(expected.iter().all(|&(part, count)| at(part) == count));
    assert_eq!(counts.iter().filter(|count| **count == "0").count(), 9995);
}

#[test]
fn what_is_refused() {
    let mut p = Probe::start();
    for (arguments, error) in [
        ("FROM 5 TO 5 BUCKETS 1", "-ERR TO must be after FROM"),
        ("FROM 6 TO 5 BUCKETS 1", "-ERR TO must be after FROM"),
        ("FROM 0 TO 0 BUCKETS 1", "-ERR TO must be after FROM"),
        ("FROM 1 TO 5 BUCKETS 0", OUT_OF_RANGE),
        ("FROM 1 TO 5 BUCKETS 10001", OUT_OF_RANGE),
        ("FROM 1 TO 5 BUCKETS -1", OUT_OF_RANGE),
        ("FROM 1 TO 5 BUCKETS 1.5", OUT_OF_RANGE),
        ("FROM -1 TO 5 BUCKETS 1", OUT_OF_RANGE),
        ("FROM 1 TO 4398046511104 BUCKETS 1", OUT_OF_RANGE),
        ("FROM x TO 5 BUCKETS 1", OUT_OF_RANGE),
        ("FROM 1 FROM 5 BUCKETS 1", "-ERR syntax error, ..."),
        ("FROM 1 TO 5 PARTS 1", "-ERR syntax error, ..."),
        ("1 5 BUCKETS 1 FROM TO", "-ERR syntax error, ..."),
        ("FROM 1 TO 5 BUCKETS", ARITY),
        ("FROM 1 TO 5", ARITY),
        ("FROM 1 TO 5 BUCKETS 1 1", "-ERR syntax error, ..."),
        ("FROM 0 TO 1 BUCKETS 1 BUCKETS 1", "-ERR syntax error, ..."),
        ("FROM 0 TO 1 BUCKETS 1 FOO 1", "-ERR syntax error, ..."),
    ] {
        for key in ["none", "string"] {
            p.run("SET string x");
            p.unseen(&format!("DQ.FORECAST {key} {arguments}"), error);
        }
    }
}
