//! Rules that the model can be told to get wrong. A run against such a model must report a
//! mismatch: so each rule is known to be reached by the operations and seen by the comparisons.

macro_rules! faults {
    ($($name:ident),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            None,
            $($name),*
        }

        impl Fault {
            pub const ALL: &'static [Fault] = &[$(Fault::$name),*];
        }
    };
}

faults! {
    AckIgnoresToken,
    AddTakesExistingId,
    AttemptsNotReset,
    DeadLenKeepsOldest,
    DeadOutliveTtl,
    DeathsUncounted,
    DedupeOff,
    DedupeOutlivesDel,
    DedupeOutlivesSetting,
    DedupeShortens,
    DelayRoundedDown,
    EarlyByOneMs,
    ForecastIncludesTo,
    ExpiryUncounted,
    FatalOnlyFails,
    FifoOvertaken,
    GraceForgotten,
    GridFromEnd,
    GroupMaxOneMore,
    GroupRateOff,
    GroupsIgnored,
    KickTakesYoungest,
    LadderOneStepOff,
    LadderRepeats,
    LatenessInMs,
    LeaseEndSilent,
    LeaseRoundedDown,
    MissedRunsRepeat,
    MaxLenBeforeCondition,
    MaxLenCountsDead,
    MaxReservedHoldsNoack,
    MaxReservedOff,
    NackKeepsToken,
    NackReachesDead,
    NewestFirst,
    NextRefused,
    PauseHoldsAdding,
    PauseIgnored,
    PauseSecondIgnored,
    PriorityIgnored,
    PurgeForgets,
    RateExemptsNoack,
    RateOff,
    RateOneUsShort,
    ReasonStays,
    ReplaceKeepsPlace,
    RenewalBeginsAfresh,
    RescheduleKeepsToken,
    ReservedRefusesLateAck,
    SilentCounts,
    SilentMoves,
    SuccessorDiesToo,
    SuccessorLosesPlace,
    SuccessorsWeighNothing,
    TimeoutEndsToken,
    TimeoutNeverKills,
    TouchByJobsTtr,
    TouchKeepsDeadline,
    TtlEndsLease,
    TurnOutlivesGroup,
    TurnSkipped,
    UnreservedTakesAll,
    XxOnlyLive,
}
