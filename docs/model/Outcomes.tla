------------------------------ MODULE Outcomes ------------------------------
(* How jobs end, which of them are kept as done, and who waits for an end.    *)
(* One master. A command takes effect and notes its ends for those who wait;  *)
(* the clients are answered in a step of their own, as they are where the     *)
(* command stands in a transaction. Queue.tla has leases, tokens and time.    *)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS Jobs, Clients,
          Keep,         \* done jobs that are kept (DONELEN), 0 is without a limit
          Keeps,        \* what jobs say themselves: KEEP, or Unset
          Ttls,         \* what DONETTL may be set to, 0 is off
          Unset,
          Swaps,        \* whether keys change their names
          Fault         \* "none", or what the checker has to notice

VARIABLES jobs,         \* id -> the job under it
          ttl,          \* DONETTL
          other,        \* the same for the queue under another name
          waits,        \* client -> the ids that it waits for, {} if it does not wait
          hears,        \* client -> ends noted for it, and not told yet
          told          \* client -> what this very step has told it

vars == <<jobs, ttl, other, waits, hears, told>>

Alike == Permutations(Jobs)

Forever == 99

(* Of a done job, how many have been done since; how long it is still kept; for the checker how long it was to be kept, *)
(* and for how long it has been.                                                                                      *)
Job(state, keep) == [state |-> state, keep |-> keep, since |-> 0, left |-> 0, owed |-> 0, age |-> 0]
None == Job("none", Unset)
To(i, state) == Job(state, jobs[i].keep)
Live == {"waiting", "reserved"}
Nothing == [c \in Clients |-> {}]

Init == /\ jobs = [i \in Jobs |-> None]
        /\ ttl \in Ttls
        /\ other = jobs
        /\ waits = Nothing
        /\ hears = Nothing
        /\ told = Nothing

(* ---- one end: everything that follows from it follows here ---- *)

Outcome(i, outcome) == [id |-> i, outcome |-> outcome]
HasHeard(c, i) == \E e \in hears[c] : e.id = i

(* What one command ends. The first end of each job counts. *)
Hear(ends) == hears' = [c \in Clients |->
    hears[c] \cup {e \in ends : /\ e.id \in waits[c]
                                /\ ~HasHeard(c, e.id)
                                /\ ~(Fault = "missed" /\ e.outcome = "deleted")}]

Silent == UNCHANGED <<ttl, other, waits>> /\ told' = Nothing
NoEnd == Silent /\ UNCHANGED hears

(* Done jobs beyond the limit: the longest done go. *)
Trimmed(queue) ==
    LET done == {i \in Jobs : queue[i].state = "done"}
        beyond == {i \in done : Cardinality({j \in done : queue[j].since < queue[i].since}) >= Keep}
    IN  IF Fault = "too many" \/ Keep = 0 THEN queue ELSE [i \in Jobs |-> IF i \in beyond THEN None ELSE queue[i]]

Older(queue) == [i \in Jobs |-> IF Keep # 0 /\ queue[i].state = "done" /\ queue[i].since < Cardinality(Jobs)
                                THEN [queue[i] EXCEPT !.since = @ + 1] ELSE queue[i]]

IsKept(keep) == IF keep = Unset THEN ttl # 0 \/ Keep # 0 ELSE keep # 0

(* Its time is that of its own KEEP, or of the DONETTL of this moment. *)
Done(i) ==
    LET keep == jobs[i].keep
        owed == IF keep # Unset THEN keep ELSE IF ttl = 0 THEN Forever ELSE ttl
        left == IF Fault = "KEEP ignored" /\ ttl # 0 THEN ttl ELSE owed
    IN  [Job("done", keep) EXCEPT !.left = left, !.owed = owed]

(* The time of a done job is over, whether the timer has come to it or not. *)
IsOver(job) == job.state = "done" /\ job.left = 0

(* One that is there and live is replaced, which is no end. *)
Add(i) == \E keep \in Keeps : jobs' = [jobs EXCEPT ![i] = Job("waiting", keep)] /\ NoEnd

Move(i, from, to) == /\ jobs[i].state \in from
                     /\ ~IsOver(jobs[i])
                     /\ jobs' = [jobs EXCEPT ![i] = To(i, to)]
                     /\ NoEnd
Pop(i) == Move(i, {"waiting"}, "reserved")
ComesBack(i) == Move(i, {"reserved"}, "waiting")
Kick(i) == Move(i, {"dead", "done"}, "waiting")

(* Late too, when its lease's end has killed it. It is told whether the job is kept or not. *)
Ack(i) == /\ jobs[i].state \in {"reserved", "dead"}
          /\ IF IsKept(jobs[i].keep)
             THEN jobs' = Trimmed([Older(jobs) EXCEPT ![i] = Done(i)])
             ELSE jobs' = [jobs EXCEPT ![i] = None]
          /\ Hear(IF Fault = "only kept are told" /\ ~IsKept(jobs[i].keep) THEN {} ELSE {Outcome(i, "done")})
          /\ Silent

Die(i) == /\ jobs[i].state = "reserved"
          /\ jobs' = [jobs EXCEPT ![i] = To(i, "dead")]
          /\ Hear({Outcome(i, "dead")})
          /\ Silent

(* DEL of several, PURGE, a TTL: all in one command. *)
Delete(is) == /\ \A i \in is : jobs[i].state # "none" /\ ~IsOver(jobs[i])
              /\ jobs' = [i \in Jobs |-> IF i \in is THEN None ELSE jobs[i]]
              /\ Hear({Outcome(i, "deleted") : i \in is})
              /\ Silent

(* ---- time ---- *)

Passes(queue) == [i \in Jobs |->
    IF queue[i].state = "done" /\ queue[i].owed # Forever
    THEN [queue[i] EXCEPT !.left = IF @ = 0 THEN 0 ELSE @ - 1, !.age = IF @ = queue[i].owed THEN @ ELSE @ + 1]
    ELSE queue[i]]

Tick == /\ Passes(jobs) # jobs \/ Passes(other) # other
        /\ jobs' = Passes(jobs)
        /\ other' = Passes(other)
        /\ told' = Nothing
        /\ UNCHANGED <<ttl, waits, hears>>

(* The timer takes those whose time is over. That is no end. *)
Without(queue) == [i \in Jobs |-> IF IsOver(queue[i]) THEN None ELSE queue[i]]
Settle == /\ Without(jobs) # jobs \/ Without(other) # other
          /\ jobs' = Without(jobs)
          /\ other' = Without(other)
          /\ told' = Nothing
          /\ UNCHANGED <<ttl, waits, hears>>

(* DONETTL. The times of those that are done stay; where nothing is on any more, those go that KEEP does not keep. *)
Configure(t) ==
    /\ t # ttl
    /\ ttl' = t
    /\ jobs' = [i \in Jobs |-> CASE jobs[i].state # "done" \/ jobs[i].keep # Unset -> jobs[i]
                                 [] t = 0 /\ Keep = 0 /\ Fault # "kept by nothing" -> None
                                 [] Fault = "by the setting of now" -> [jobs[i] EXCEPT !.left = t]
                                 [] OTHER -> jobs[i]]
    /\ told' = Nothing
    /\ UNCHANGED <<other, waits, hears>>

(* ---- what is under a name now ---- *)

Ended(queue, i) == queue[i].state \notin Live
Found(queue, i) == Outcome(i, CASE queue[i].state = "none" -> "unknown"
                                [] IsOver(queue[i]) /\ Fault # "shown beyond its time" -> "unknown"
                                [] OTHER -> queue[i].state)
AllFound(queue) == {Found(queue, i) : i \in {i \in Jobs : Ended(queue, i)}}

(* SWAPDB, RENAME, a key's deletion: what is there now is looked at. *)
Swap == /\ Swaps
        /\ jobs' = other
        /\ other' = jobs
        /\ IF Fault = "swapped" THEN UNCHANGED hears ELSE Hear(AllFound(other))
        /\ told' = Nothing
        /\ UNCHANGED <<ttl, waits>>

(* ---- who waits ---- *)

Await(c, is) ==
    LET over == {e \in AllFound(jobs) : e.id \in is}
    IN  /\ waits[c] = {}
        /\ IF over # {} /\ Fault # "not looked"
           THEN told' = [Nothing EXCEPT ![c] = over] /\ UNCHANGED waits
           ELSE waits' = [waits EXCEPT ![c] = is] /\ told' = Nothing
        /\ UNCHANGED <<jobs, ttl, other, hears>>

(* All that has ended by then. *)
Tell(c) == /\ hears[c] # {}
           /\ told' = [Nothing EXCEPT ![c] = IF Fault = "looked late" THEN {e \in AllFound(jobs) : HasHeard(c, e.id)} ELSE hears[c]]
           /\ hears' = [hears EXCEPT ![c] = {}]
           /\ waits' = [waits EXCEPT ![c] = {}]
           /\ UNCHANGED <<jobs, ttl, other>>

TimesOut(c) == /\ waits[c] # {}
               /\ hears[c] = {}
               /\ waits' = [waits EXCEPT ![c] = {}]
               /\ told' = Nothing
               /\ UNCHANGED <<jobs, ttl, other, hears>>

Next == \/ \E i \in Jobs : Add(i) \/ Pop(i) \/ ComesBack(i) \/ Kick(i) \/ Ack(i) \/ Die(i)
        \/ \E is \in SUBSET Jobs \ {{}} : Delete(is)
        \/ Swap
        \/ Tick
        \/ Settle
        \/ \E t \in Ttls : Configure(t)
        \/ \E c \in Clients : \/ Tell(c) \/ TimesOut(c)
                              \/ \E is \in SUBSET Jobs \ {{}} : Await(c, is)

Spec == /\ Init
        /\ [][Next]_vars
        /\ Fault # "never told" => \A c \in Clients : WF_vars(Tell(c))
        /\ Fault # "kept for ever" => WF_vars(Settle)
        /\ WF_vars(Tick)

(* ---- what holds ---- *)

(* Who waits, and has heard of nothing, waits for jobs that can still end. *)
NoEndMissed == \A c \in Clients : hears[c] = {} => \A i \in waits[c] : ~Ended(jobs, i)

(* What is told is what was noted when it happened. *)
ToldAsItWas == [][\A c \in Clients : told'[c] # {} /\ waits[c] # {} => told'[c] = hears[c]]_vars

DoneWithinLimit == Cardinality({i \in Jobs : jobs[i].state = "done"}) <= Keep

(* It is there until its time is over, and not beyond; nothing of what is not to be kept is. *)
ByItsTime == \A i \in Jobs : jobs[i].state = "done" => (IsOver(jobs[i]) <=> jobs[i].age >= jobs[i].owed)
KeptByRule == \A i \in Jobs : jobs[i].state = "done" => IsKept(jobs[i].keep)

(* Who asks is told what is there: of a job whose time is over, nothing. *)
ToldWhatIsThere == [][\A c \in Clients : waits[c] = {} => \A e \in told'[c] :
    CASE e.outcome = "done" -> jobs[e.id].state = "done" /\ jobs[e.id].age < jobs[e.id].owed
      [] e.outcome = "unknown" -> jobs[e.id].state = "none" \/ (jobs[e.id].state = "done" /\ jobs[e.id].age >= jobs[e.id].owed)
      [] OTHER -> jobs[e.id].state = e.outcome]_vars

(* What is kept for a time goes, unless it is kicked or deleted before. *)
TheyGo == \A i \in Jobs : jobs[i].state = "done" /\ jobs[i].owed # Forever ~> jobs[i].state # "done"

(* Nobody to whom something is to be told waits for ever. *)
EndsAreTold == \A c \in Clients : hears[c] # {} ~> waits[c] = {}
=============================================================================
