//! The bytes of each effect, in the order of the variants.

use super::*;
use crate::storage::few::Few;

type Golden = Vec<(Effect<'static>, &'static str)>;

pub(super) fn effects() -> Golden {
    [arrivals(), of_queues(), of_jobs(), of_flows()].concat()
}

/// How jobs come.
fn arrivals() -> Golden {
    let (due, expires) = (400, 401);
    let came = |group, how| {
        Effect::Came(Came {
            id: ID,
            payload: PAYLOAD,
            terms: TERMS,
            group,
            how,
        })
    };
    let after = After {
        until: For::Jobs(Few::One(serde_bytes::Bytes::new(ID)), OnDead::Run),
        at: MOMENT,
        is_timed: true,
        dies: false,
    };
    let (rule, first) = (RULE, NEXT);
    vec![
        (
            came(None, How::New { due, expires: 0 }),
            "0000026964046c6f6164d704ad02ae020e0702d9021702e0022704af02b0029003",
        ),
        (
            came(Some(b"group"), How::New { due, expires }),
            "0018026964046c6f6164d704ad02ae020e0702d9021702e0022704af02b0020567726f757090039103",
        ),
        (
            came(None, How::Behind { due, expires }),
            "0011026964046c6f6164d704ad02ae020e0702d9021702e0022704af02b00290039103",
        ),
        (
            came(
                None,
                How::After {
                    due,
                    expires: 0,
                    after,
                },
            ),
            "0002026964046c6f6164d704ad02ae020e0702d9021702e0022704af02b0029003000102696401a503010100",
        ),
        (
            came(None, How::Recurs { rule, first }),
            "0003026964046c6f6164d704ad02ae020e0702d9021702e0022704af02b00200b602b702b802b902ba02bb02b202b302b402e904",
        ),
        (
            came(Some(b"group"), How::Renewed { rule: RULE }),
            "000c026964046c6f6164d704ad02ae020e0702d9021702e0022704af02b0020567726f757000b602b702b802b902ba02bb02",
        ),
        (
            Effect::CameTogether {
                group: Some(b"group"),
                due,
                expires,
                terms: TERMS,
                jobs: vec![Arrival {
                    id: ID.into(),
                    payload: PAYLOAD,
                }],
            },
            "01010567726f757090039103d704ad02ae020e0702d9021702e0022704af02b00201026964046c6f6164",
        ),
    ]
}

/// `Job` to `Rows`.
fn of_queues() -> Golden {
    let id = ID;
    let change = Change::Rescheduled { due: 402 };
    vec![
        (Effect::Job { id, change }, "02026964059203"),
        (
            Effect::Configured(settings()),
            "034f020301c8020402c9020607062704ca02cb020802cc020a02cd020c02ce020e02cf02100501c602c7021202d0021402c502160501c602c7021801011a02d4021c02d5021e02d6022002d10222020102",
        ),
        (Effect::Paused { until: 403 }, "049303"),
        (Effect::Remembered { id, until: 404 }, "050269649403"),
        (Effect::Forgot(Forgotten::Until(405)), "06019503"),
        (
            Effect::Floors {
                seq: 407,
                death: 408,
                token: 409,
            },
            "07970398039903",
        ),
        (Effect::Dropped, "08"),
        (Effect::Purged(Purge::Trim { count: 415 }), "09029f03"),
        (
            Effect::Minted {
                ms: 411,
                seq: 412,
                token: 413,
            },
            "0a9b039c039d03",
        ),
        (Effect::Rows { rows: b"rows" }, "0b04726f7773"),
    ]
}

/// `Recurred` to `Waits`.
fn of_jobs() -> Golden {
    let id = ID;
    vec![
        (
            Effect::Recurred {
                id,
                ended: OccurrenceCause::Acked,
                next: Some(NEXT),
                failure: Some(FAILURE),
            },
            "0c0269640001b202b302b402e90401b1020103776879",
        ),
        (
            Effect::Noted {
                id,
                note: Note::Awaits { name: b"sig" },
            },
            "0d0269641003736967",
        ),
        (Effect::Done(OfDone::Trimmed { count: 353 }), "0e05e102"),
        (
            Effect::Waits {
                id,
                after: After {
                    until: For::Group(b"group"),
                    at: MOMENT,
                    is_timed: false,
                    dies: true,
                },
            },
            "0f026964010567726f7570a503010001",
        ),
    ]
}

/// How what jobs wait for ends: from `Over` on.
fn of_flows() -> Golden {
    let id = ID;
    vec![
        (
            Effect::Over {
                id,
                outcome: Some(Outcome::Dead),
                at: MOMENT,
                value: Some(b"why"),
            },
            "100269640101a503010103776879",
        ),
        (
            Effect::Stepped {
                count: 422,
                ready: true,
                dead: false,
                added: true,
            },
            "11a603010001",
        ),
        (
            Effect::End {
                id,
                outcome: Some(Outcome::Expired),
                at: MOMENT,
                value: None,
            },
            "120269640103a5030100",
        ),
        (
            Effect::Links {
                id,
                on_dead: OnDead::Die,
                is_timed: true,
                of_group: false,
                latest: MOMENT,
                links: vec![
                    Link::Held(ID),
                    Link::Over(424),
                    Link::Pending(425),
                    Link::Group(b"group"),
                ],
            },
            "13026964020100a50301040002696401a80302a903030567726f7570",
        ),
        (
            Effect::Failed {
                id,
                attempt: ATTEMPT,
                kept: 429,
            },
            "14026964aa03ab03ac03010103776879ad03",
        ),
        (
            Effect::Group {
                name: b"group",
                own: OWN,
            },
            "150567726f757001b00301ae030101c602c70201af03b103",
        ),
    ]
}

pub(super) fn changes() -> Vec<(Change<'static>, &'static str)> {
    let (due, deadline, lease_ms, priority, remember) = (500, 501, 502, -503, 504);
    vec![
        (
            Change::Reserved {
                token: 505,
                deadline,
                lease_ms,
            },
            "00f903f503f603",
        ),
        (Change::Touched { deadline, lease_ms }, "01f503f603"),
        (Change::TimedOut, "02"),
        (
            Change::Nacked {
                due,
                priority,
                attempts: 506,
                failure: Some(FAILURE),
            },
            "03f403ed07fa0301b1020103776879",
        ),
        (
            Change::Died {
                at: 507,
                cause: DeathCause::TimedOut,
            },
            "04fb0300",
        ),
        (Change::Rescheduled { due }, "05f403"),
        (Change::Kicked { due }, "06f403"),
        (
            Change::Removed {
                cause: RemovalCause::Acked,
                remember,
            },
            "0700f803",
        ),
        (Change::Prioritized { priority }, "08ed07"),
        (
            Change::Succeeded {
                end: EndCause::Acked,
                remember,
                ready: true,
            },
            "0900f80301",
        ),
        (Change::SuccessorExpired, "0a"),
        (Change::Unblocked { due }, "0bf403"),
    ]
}
