//! The bytes of each effect, in the order of the variants.

use super::*;
use crate::storage::few::Few;

type Golden = Vec<(Effect<'static>, &'static str)>;

pub(super) fn effects() -> Golden {
    [
        of_the_first_versions(),
        of_rules(),
        of_groups_and_notes(),
        of_arrivals(),
        of_flows(),
    ]
    .concat()
}

/// Up to `Trimmed`.
fn of_the_first_versions() -> Golden {
    let (id, payload, terms, due, expires) = (ID, PAYLOAD, TERMS, 400, 401);
    let change = Change::Rescheduled { due: 402 };
    vec![
        (
            Effect::Added {
                id,
                payload,
                due,
                expires,
                terms: terms.clone(),
            },
            "00026964046c6f616490039103d704ad02ae020e0702d9021702e0022704af02b002",
        ),
        (Effect::Job { id, change }, "01026964059203"),
        (Effect::Kept, "02"),
        (
            Effect::Configured(settings()),
            "0301c802c902062704ca02cb02cc02cd02ce02cf0201c602c702",
        ),
        (Effect::Paused { until: 403 }, "049303"),
        (Effect::Resumed, "05"),
        (Effect::Remembered { id, until: 404 }, "060269649403"),
        (Effect::ForgotId { id }, "07026964"),
        (Effect::Forgot { until: 405 }, "089503"),
        (
            Effect::Floors {
                seq: 407,
                death: 408,
                token: 409,
            },
            "09970398039903",
        ),
        (Effect::Dropped, "0a"),
        (
            Effect::Purged {
                state: Some(State::Dead),
                cut: 410,
            },
            "0b01039a03",
        ),
        (
            Effect::Minted {
                ms: 411,
                seq: 412,
                token: 413,
            },
            "0c9b039c039d03",
        ),
        (Effect::Rows { rows: b"rows" }, "0d04726f7773"),
        (Effect::PurgedLeases { cut: 414 }, "0e9e03"),
        (Effect::Trimmed { count: 415 }, "0f9f03"),
    ]
}

/// Failures and rules: `Failed` to `Recurred`.
fn of_rules() -> Golden {
    let (id, payload, terms, due, expires) = (ID, PAYLOAD, TERMS, 400, 401);
    let change = Change::Rescheduled { due: 402 };
    vec![
        (
            Effect::Failed {
                id,
                change,
                failure: FAILURE,
            },
            "10026964059203b1020103776879",
        ),
        (
            Effect::Followed {
                id,
                payload,
                due,
                expires,
                terms: terms.clone(),
            },
            "11026964046c6f616490039103d704ad02ae020e0702d9021702e0022704af02b002",
        ),
        (Effect::Bounded { max_bytes: 416 }, "12a003"),
        (
            Effect::Recurs {
                id,
                payload,
                terms: terms.clone(),
                rule: RULE,
                first: NEXT,
            },
            "13026964046c6f6164d704ad02ae020e0702d9021702e0022704af02b00200b602b702b802b902ba02bb02b202b302b402e904",
        ),
        (
            Effect::Renewed {
                id,
                payload,
                terms: terms.clone(),
                rule: RULE,
            },
            "14026964046c6f6164d704ad02ae020e0702d9021702e0022704af02b00200b602b702b802b902ba02bb02",
        ),
        (
            Effect::Recurred {
                id,
                ended: Ended::Acked,
                next: Some(NEXT),
                failure: Some(FAILURE),
            },
            "150269640001b202b302b402e90401b1020103776879",
        ),
    ]
}

/// Groups, notes and done jobs: `Grouped` to `Done`.
fn of_groups_and_notes() -> Golden {
    let (id, payload, due, expires) = (ID, PAYLOAD, 400, 401);
    vec![
        (
            Effect::Grouped {
                group: b"group",
                id,
                payload,
                terms: TERMS,
                coming: Coming::Added { due, expires },
            },
            "160567726f7570026964046c6f6164d704ad02ae020e0702d9021702e0022704af02b0020090039103",
        ),
        (Effect::GroupLimits(LIMITS), "17c50201c602c70201"),
        (
            Effect::Noted {
                id,
                note: Note::Awaits { name: b"sig" },
            },
            "180269640203736967",
        ),
        (
            Effect::PurgedOverdue {
                dead: true,
                cut: 419,
            },
            "1901a303",
        ),
        (Effect::Done(OfDone::Trimmed { count: 353 }), "1a05e102"),
    ]
}

/// Many jobs at once, and jobs after others: `AddedTogether` to `Waits`.
fn of_arrivals() -> Golden {
    let (id, payload, due, expires) = (ID, PAYLOAD, 400, 401);
    vec![
        (
            Effect::AddedTogether {
                group: Some(b"group"),
                due,
                expires,
                terms: TERMS,
                jobs: vec![Arrival {
                    id: ID.into(),
                    payload,
                }],
            },
            "1b010567726f757090039103d704ad02ae020e0702d9021702e0022704af02b00201026964046c6f6164",
        ),
        (
            Effect::AddedAfter {
                group: None,
                id,
                payload: PAYLOAD,
                due: 419,
                expires: 420,
                terms: TERMS,
                after: After {
                    until: For::Jobs(Few::One(serde_bytes::Bytes::new(ID)), OnDead::Run),
                    at: MOMENT,
                    is_timed: true,
                    dies: false,
                },
            },
            "1c00026964046c6f6164a303a403d704ad02ae020e0702d9021702e0022704af02b002000102696401a503010100",
        ),
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
            "1d026964010567726f7570a503010001",
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
                outcome: Outcome::Dead,
                at: MOMENT,
                value: Some(b"why"),
            },
            "1e02696401a503010103776879",
        ),
        (
            Effect::Emptied {
                group: b"group",
                at: MOMENT,
            },
            "1f0567726f7570a50301",
        ),
        (
            Effect::Stepped {
                count: 422,
                ready: true,
                dead: false,
                added: true,
            },
            "20a603010001",
        ),
        (Effect::Unblocked { id, due: 423 }, "21026964a703"),
        (
            Effect::End {
                id,
                outcome: Some(Outcome::Expired),
                at: MOMENT,
                value: None,
            },
            "220269640103a5030100",
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
            "23026964020100a50301040002696401a80302a903030567726f7570",
        ),
    ]
}

pub(super) fn changes() -> Vec<(Change, &'static str)> {
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
            },
            "03f403ed07fa03",
        ),
        (
            Change::Died {
                at: 507,
                cause: Death::TimedOut,
            },
            "04fb0300",
        ),
        (Change::Rescheduled { due }, "05f403"),
        (Change::Kicked { due }, "06f403"),
        (
            Change::Removed {
                cause: Removal::Acked,
                remember,
            },
            "0700f803",
        ),
        (Change::Prioritized { priority }, "08ed07"),
        (
            Change::Succeeded {
                end: End::Acked,
                remember,
                ready: true,
            },
            "0900f80301",
        ),
        (Change::SuccessorExpired, "0a"),
    ]
}
