------------------------------ MODULE Outcomes ------------------------------
(* How jobs end, which of them are kept as done, and who waits for an end.    *)
(* One master. A command takes effect and notes its ends for those who wait;  *)
(* the clients are answered in a step of their own, as they are where the     *)
(* command stands in a transaction. Queue.tla has leases, tokens and time.    *)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS Jobs, Clients,
          Keep,         \* done jobs that are kept (DONELEN)
          Fault         \* "none", or what the checker has to notice

VARIABLES jobs,         \* id -> the job under it
          other,        \* the same for the queue under another name
          waits,        \* client -> the ids that it waits for, {} if it does not wait
          hears,        \* client -> ends noted for it, and not told yet
          told          \* client -> what this very step has told it

vars == <<jobs, other, waits, hears, told>>

Alike == Permutations(Jobs)

(* Of a done job, how many have been done since. *)
Job(state) == [state |-> state, since |-> 0]
Live == {"waiting", "reserved"}
Nothing == [c \in Clients |-> {}]

Init == /\ jobs = [i \in Jobs |-> Job("none")]
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

Silent == UNCHANGED <<other, waits>> /\ told' = Nothing
Unheard == Silent /\ UNCHANGED hears

(* Done jobs beyond the limit: the longest done go. *)
Trimmed(queue) ==
    LET done == {i \in Jobs : queue[i].state = "done"}
        beyond == {i \in done : Cardinality({j \in done : queue[j].since < queue[i].since}) >= Keep}
    IN  IF Fault = "too many" THEN queue ELSE [i \in Jobs |-> IF i \in beyond THEN Job("none") ELSE queue[i]]

Older(queue) == [i \in Jobs |-> IF queue[i].state = "done" /\ queue[i].since < Cardinality(Jobs)
                                THEN [queue[i] EXCEPT !.since = @ + 1] ELSE queue[i]]

(* One that is there and live is replaced, which is no end. *)
Add(i) == jobs' = [jobs EXCEPT ![i] = Job("waiting")] /\ Unheard

Move(i, from, to) == jobs[i].state \in from /\ jobs' = [jobs EXCEPT ![i] = Job(to)] /\ Unheard
Pop(i) == Move(i, {"waiting"}, "reserved")
ComesBack(i) == Move(i, {"reserved"}, "waiting")
Kick(i) == Move(i, {"dead", "done"}, "waiting")

(* Late too, when its lease's end has killed it. *)
Ack(i) == /\ jobs[i].state \in {"reserved", "dead"}
          /\ jobs' = Trimmed([Older(jobs) EXCEPT ![i] = Job("done")])
          /\ Hear({Outcome(i, "done")})
          /\ Silent

Die(i) == /\ jobs[i].state = "reserved"
          /\ jobs' = [jobs EXCEPT ![i] = Job("dead")]
          /\ Hear({Outcome(i, "dead")})
          /\ Silent

(* DEL of several, PURGE, a TTL: all in one command. *)
Delete(is) == /\ \A i \in is : jobs[i].state # "none"
              /\ jobs' = [i \in Jobs |-> IF i \in is THEN Job("none") ELSE jobs[i]]
              /\ Hear({Outcome(i, "deleted") : i \in is})
              /\ Silent

(* ---- what is under a name now ---- *)

Ended(queue, i) == queue[i].state \notin Live
Found(queue, i) == Outcome(i, CASE queue[i].state = "none" -> "unknown" [] OTHER -> queue[i].state)
AllFound(queue) == {Found(queue, i) : i \in {i \in Jobs : Ended(queue, i)}}

(* SWAPDB, RENAME, a key's deletion: what is there now is looked at. *)
Swap == /\ jobs' = other
        /\ other' = jobs
        /\ IF Fault = "swapped" THEN UNCHANGED hears ELSE Hear(AllFound(other))
        /\ told' = Nothing
        /\ UNCHANGED waits

(* ---- who waits ---- *)

Await(c, is) ==
    LET over == {e \in AllFound(jobs) : e.id \in is}
    IN  /\ waits[c] = {}
        /\ IF over # {} /\ Fault # "not looked"
           THEN told' = [Nothing EXCEPT ![c] = over] /\ UNCHANGED waits
           ELSE waits' = [waits EXCEPT ![c] = is] /\ told' = Nothing
        /\ UNCHANGED <<jobs, other, hears>>

(* All that has ended by then. *)
Tell(c) == /\ hears[c] # {}
           /\ told' = [Nothing EXCEPT ![c] = IF Fault = "looked late" THEN {e \in AllFound(jobs) : HasHeard(c, e.id)} ELSE hears[c]]
           /\ hears' = [hears EXCEPT ![c] = {}]
           /\ waits' = [waits EXCEPT ![c] = {}]
           /\ UNCHANGED <<jobs, other>>

TimesOut(c) == /\ waits[c] # {}
               /\ hears[c] = {}
               /\ waits' = [waits EXCEPT ![c] = {}]
               /\ told' = Nothing
               /\ UNCHANGED <<jobs, other, hears>>

Next == \/ \E i \in Jobs : Add(i) \/ Pop(i) \/ ComesBack(i) \/ Kick(i) \/ Ack(i) \/ Die(i)
        \/ \E is \in SUBSET Jobs \ {{}} : Delete(is)
        \/ Swap
        \/ \E c \in Clients : \/ Tell(c) \/ TimesOut(c)
                              \/ \E is \in SUBSET Jobs \ {{}} : Await(c, is)

Spec == Init /\ [][Next]_vars /\ (Fault # "never told" => \A c \in Clients : WF_vars(Tell(c)))

(* ---- what holds ---- *)

(* Who waits, and has heard of nothing, waits for jobs that can still end. *)
NoEndMissed == \A c \in Clients : hears[c] = {} => \A i \in waits[c] : ~Ended(jobs, i)

(* What is told is what was noted when it happened. *)
ToldAsItWas == [][\A c \in Clients : told'[c] # {} /\ waits[c] # {} => told'[c] = hears[c]]_vars

DoneWithinLimit == Cardinality({i \in Jobs : jobs[i].state = "done"}) <= Keep

(* Nobody to whom something is to be told waits for ever. *)
EndsAreTold == \A c \in Clients : hears[c] # {} ~> waits[c] = {}
=============================================================================
