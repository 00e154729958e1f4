------------------------------- MODULE Flows -------------------------------
(* Jobs after others: blocked jobs, ends of every kind, ONDEAD, groups, and    *)
(* the line in which what an end frees or kills is carried out step by step.   *)
(* One master. The order of deliveries and all times are left out.             *)
EXTENDS Naturals, FiniteSets, Sequences, TLC

CONSTANTS Jobs,
          Groups,       \* the groups that a job may be in, or wait for
          Adds,         \* how many jobs are added or blocked in all
          Ends,         \* how many ends there may be that are not "done"
          Fault         \* "none", or what the checker must notice

VARIABLES jobs,         \* id -> state, order of adding, group, ondead, the group it waits for, how many ends it still waits for
          edges,        \* <<x, j>>: x is after j, and j has not ended
          line,         \* <<x, "over" or "die">>: what ends have caused and no step has carried out
          added, ended,
          owed          \* the checker's own record: id -> the ids whose ends its job must await

vars == <<jobs, edges, line, added, ended, owed>>

Alike == Permutations(Jobs)

NoGroup == "no group"
Gone == [state |-> "none", seq |-> 0, group |-> NoGroup, ondead |-> "wait", behind |-> NoGroup, open |-> 0]

Init == /\ jobs = [j \in Jobs |-> Gone]
        /\ edges = {}
        /\ line = <<>>
        /\ added = 0
        /\ ended = 0
        /\ owed = [j \in Jobs |-> {}]

In(state) == {j \in Jobs : jobs[j].state = state}
Held == {j \in Jobs : jobs[j].state # "none"}
Members(s, g) == {j \in Jobs : s[j].group = g /\ s[j].state \in {"blocked", "waiting", "reserved"}}

(* ---- circles ---- *)

Before(s, e, x) == {j \in Jobs : <<x, j>> \in e}
                   \cup IF s[x].behind = NoGroup THEN {} ELSE Members(s, s[x].behind)

RECURSIVE Reach(_, _, _)
Reach(s, e, seen) ==
    LET more == UNION {Before(s, e, x) : x \in seen} \ seen
    IN  IF more = {} THEN seen ELSE Reach(s, e, seen \cup more)

IsCircle(s, e, x) == x \in Reach(s, e, Before(s, e, x))

(* ---- what a command leaves behind ---- *)

(* In the order of adding. Those of one job are alike, so their order is nothing. *)
RECURSIVE Listed(_)
Listed(items) ==
    IF items = {} THEN <<>>
    ELSE LET i == CHOOSE i \in items : \A k \in items : jobs[i[1]].seq <= jobs[k[1]].seq
         IN  <<i>> \o Listed(items \ {i})

(* Who waited for a group that this command has emptied. It is asked once, when the command is done. *)
Emptied(s) == {x \in Jobs : /\ s[x].behind # NoGroup
                            /\ Members(s, s[x].behind) = {}}

Becomes(s, e, l) ==
    LET free == Emptied(s)
    IN  /\ jobs' = [x \in Jobs |-> IF x \in free THEN [s[x] EXCEPT !.behind = NoGroup] ELSE s[x]]
        /\ edges' = e
        /\ line' = l \o Listed({<<x, "over">> : x \in free})

(* Jobs that are freed, dead, replaced or gone wait for nothing. *)
LineWithout(l, left) == IF Fault = "line by id" THEN l ELSE SelectSeq(l, LAMBDA i : i[1] \notin left)
EdgesWithout(left) == {p \in edges : p[1] \notin left}

Verdict(ondead, outcome) == CASE outcome = "done" -> "over"
                              [] outcome = "dead" /\ ondead = "wait" -> "stays"
                              [] ondead = "run" -> "over"
                              [] OTHER -> "die"

(* What is done about it. *)
Heed(ondead, outcome) == IF Fault = "ONDEAD ignored" THEN "over" ELSE Verdict(ondead, outcome)

(* All of `over` end in one command, which makes the jobs s. None of them dies of another. *)
End(over, outcome, s, l) ==
    LET e == EdgesWithout(over)
        hit == {p \in e : p[2] \in over /\ Heed(jobs[p[1]].ondead, outcome) # "stays"}
        told == IF Fault = "deleted in silence" /\ outcome = "gone" THEN <<>> ELSE Listed(hit)
        items == [i \in 1..Len(told) |-> <<told[i][1], Heed(jobs[told[i][1]].ondead, outcome)>>]
    IN  /\ Becomes(s, IF Fault = "edge stays" THEN e ELSE e \ hit, LineWithout(l, over) \o items)
        /\ owed' = [x \in Jobs |-> IF x \in over THEN {}
                                   ELSE owed[x] \ {j \in over : Verdict(jobs[x].ondead, outcome) = "over"}]

Put(x, job) == [jobs EXCEPT ![x] = job]
To(x, state) == [jobs EXCEPT ![x].state = state]

(* ---- commands ---- *)

(* x, new or given back, is after all of d. One that is dead counts as ending now. *)
After(x, d, seq, group, ondead) ==
    LET dead == d \cap In("dead")
        open == IF ondead = "run" THEN d \ dead ELSE d
        dies == ondead = "die" /\ dead # {}
        e == EdgesWithout({x}) \cup ({x} \X open)
        state == CASE dies -> "dead" [] open = {} -> "waiting" [] OTHER -> "blocked"
        job == [Gone EXCEPT !.state = state, !.seq = seq, !.group = group, !.ondead = ondead,
                            !.open = IF state = "blocked" THEN Cardinality(open) ELSE 0]
    IN  /\ x \notin d
        /\ d \subseteq Held
        /\ ~IsCircle(Put(x, job), e, x) \/ Fault = "no check"
        /\ IF dies THEN End({x}, "dead", Put(x, job), line)
           ELSE /\ Becomes(Put(x, job), IF state = "blocked" THEN e ELSE EdgesWithout({x}), LineWithout(line, {x}))
                /\ owed' = [owed EXCEPT ![x] = open]

AfterGroup(x, g, group) ==
    LET waits == Members(jobs, g) \ {x} # {}
        job == [Gone EXCEPT !.seq = added, !.state = IF waits THEN "blocked" ELSE "waiting", !.group = group,
                            !.behind = IF waits THEN g ELSE NoGroup, !.open = IF waits THEN 1 ELSE 0]
    IN  /\ group # g
        /\ ~IsCircle(Put(x, job), EdgesWithout({x}), x) \/ Fault = "no check"
        /\ Becomes(Put(x, job), EdgesWithout({x}), LineWithout(line, {x}))
        /\ owed' = [owed EXCEPT ![x] = {}]

MayAdd == added < Adds /\ added' = added + 1 /\ UNCHANGED ended

(* Also in the place of a job of that id, whose end is none: those after it wait for the new one. *)
Add(x, d, group, ondead) == MayAdd /\ After(x, d, added, group, ondead)
AddBehind(x, g, group) == MayAdd /\ AfterGroup(x, g, group)
(* NACK ... SILENT AFTER *)
GiveBack(x, d, ondead) == MayAdd /\ jobs[x].state = "reserved" /\ After(x, d, jobs[x].seq, jobs[x].group, ondead)

Same == UNCHANGED <<added, ended>>
Plain(s) == Becomes(s, edges, line) /\ UNCHANGED <<added, ended, owed>>

Pop(x) == jobs[x].state = "waiting" /\ Plain(To(x, "reserved"))
ComesBack(x) == jobs[x].state = "reserved" /\ Plain(To(x, "waiting"))
Kick(x) == jobs[x].state = "dead" /\ ended < Ends /\ ended' = ended + 1
           /\ Becomes(To(x, "waiting"), edges, line) /\ UNCHANGED <<added, owed>>

(* A late ACK finds the dead. *)
Ack(x) == jobs[x].state \in {"reserved", "dead"} /\ End({x}, "done", Put(x, Gone), line) /\ Same

Bad == ended < Ends /\ ended' = ended + 1 /\ UNCHANGED added
Die(x) == Bad /\ jobs[x].state = "reserved" /\ End({x}, "dead", To(x, "dead"), line)
(* DEL, PURGE, TTL, DEADLEN *)
Remove(over) == Bad /\ over \subseteq Held
                /\ End(over, "gone", [x \in Jobs |-> IF x \in over THEN Gone ELSE jobs[x]], line)

Free(x) == [jobs[x] EXCEPT !.state = "waiting", !.open = 0, !.behind = NoGroup]
KickBlocked(x) == /\ Bad
                  /\ jobs[x].state = "blocked"
                  /\ Becomes(Put(x, Free(x)), EdgesWithout({x}), LineWithout(line, {x}))
                  /\ owed' = [owed EXCEPT ![x] = {}]

(* ---- a step ---- *)

Step ==
    /\ line # <<>>
    /\ Same
    /\ LET x == line[1][1]
           last == jobs[x].open = 1 \/ Fault = "first is enough"
       IN  IF line[1][2] = "die"
           THEN End({x}, "dead", Put(x, [jobs[x] EXCEPT !.state = "dead", !.open = 0, !.behind = NoGroup]), Tail(line))
           ELSE /\ Becomes(IF last THEN Put(x, Free(x)) ELSE [jobs EXCEPT ![x].open = @ - 1], edges, Tail(line))
                /\ UNCHANGED owed

(* The line is data: a copy, a restart and a new master go on with it. *)
Restart == Fault = "line is lost" /\ line' = <<>> /\ UNCHANGED <<jobs, edges, added, ended, owed>>

Next == \/ \E x \in Jobs : \/ \E d \in SUBSET Jobs, group \in Groups \cup {NoGroup}, ondead \in {"wait", "run", "die"} :
                                  (d # {} \/ ondead = "wait") /\ Add(x, d, group, ondead)
                           \/ \E g \in Groups, group \in Groups \cup {NoGroup} : AddBehind(x, g, group)
                           \/ \E d \in SUBSET Jobs \ {{}}, ondead \in {"wait", "run", "die"} : GiveBack(x, d, ondead)
                           \/ Pop(x) \/ ComesBack(x) \/ Ack(x) \/ Die(x) \/ Kick(x) \/ KickBlocked(x)
        \/ \E over \in SUBSET Jobs \ {{}} : Remove(over)
        \/ Step
        \/ Restart

Spec == Init /\ [][Next]_vars

(* Workers that do their jobs, and a timer that takes its steps. *)
Fair == Spec /\ WF_vars(Step) /\ \A x \in Jobs : WF_vars(Pop(x)) /\ SF_vars(jobs[x].state = "reserved" /\ Ack(x))

(* ---- what holds ---- *)

Items(x) == Cardinality({i \in 1..Len(line) : line[i][1] = x})

(* Each end counts once, for the job that waited for it. *)
CountedOnce == \A x \in Jobs :
    IF jobs[x].state = "blocked"
    THEN /\ jobs[x].open = Cardinality({p \in edges : p[1] = x}) + Items(x) + (IF jobs[x].behind = NoGroup THEN 0 ELSE 1)
         /\ jobs[x].open > 0
    ELSE Before(jobs, edges, x) = {} /\ Items(x) = 0

(* No blocked job waits for what cannot come. *)
NoneStuck == \A x \in In("blocked") :
    \/ Items(x) > 0
    \/ \E p \in edges : p[1] = x
    \/ jobs[x].behind # NoGroup /\ Members(jobs, jobs[x].behind) # {}
EdgesHeld == \A p \in edges : p[2] \in Held

NoCircle == \A x \in Jobs : ~IsCircle(jobs, edges, x)

NotBefore == \A x \in In("waiting") \cup In("reserved") : owed[x] = {}

(* If no more is added, every job runs but those that wait for a dead one. *)
IsHeldUp(x) == In("dead") \cap Reach(jobs, edges, {x}) # {}
AllRun == \A x \in Jobs : [](added = Adds /\ ended = Ends /\ jobs[x].state = "blocked" =>
                             <>(jobs[x].state # "blocked" \/ IsHeldUp(x)))
=============================================================================
