------------------------------- MODULE Turns -------------------------------
(* What Queue.tla leaves out: groups with GROUPMAX or GROUPFIFO, and a job    *)
(* that comes again. One master, and no time but that of the rule.            *)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS Jobs, Groups,
          GroupMax,     \* reserved jobs of a group
          IsFifo,
          Adds,         \* how many are added in all
          Every, Last,  \* the rule's interval, and the last instant that is looked at
          Fault         \* "none", or what the checker has to notice

VARIABLES jobs,         \* job -> where it is, its place in the order of adding, its group
          added,
          now,
          occurrence,   \* the instant of the one that is there
          is_reserved

vars == <<jobs, added, now, occurrence, is_reserved>>

Alike == Permutations(Jobs) \cup Permutations(Groups)

Gone == [state |-> "none"]
Live(g) == {j \in Jobs : jobs[j].state \in {"waiting", "reserved"} /\ jobs[j].group = g}
Reserved(g) == {j \in Live(g) : jobs[j].state = "reserved"}

Init == /\ jobs = [j \in Jobs |-> Gone]
        /\ added = 0
        /\ now = 0
        /\ occurrence = Every
        /\ is_reserved = FALSE

To(j, state) == jobs' = [jobs EXCEPT ![j].state = state] /\ UNCHANGED <<added, now, occurrence, is_reserved>>

Add(j, g) == /\ jobs[j].state = "none"
             /\ added < Adds
             /\ added' = added + 1
             /\ jobs' = [jobs EXCEPT ![j] = [state |-> "waiting", seq |-> added, group |-> g]]
             /\ UNCHANGED <<now, occurrence, is_reserved>>

(* With GROUPFIFO the first of its group alone, while no other is reserved. *)
MayBeServed(j) ==
    LET g == jobs[j].group
    IN  /\ Cardinality(Reserved(g)) < GroupMax \/ Fault = "beyond max"
        /\ \/ ~IsFifo
           \/ Fault = "out of turn"
           \/ Reserved(g) = {} /\ \A k \in Live(g) : jobs[j].seq <= jobs[k].seq

Pop(j) == jobs[j].state = "waiting" /\ MayBeServed(j) /\ To(j, "reserved")
Ack(j) == jobs[j].state = "reserved" /\ jobs' = [jobs EXCEPT ![j] = Gone] /\ UNCHANGED <<added, now, occurrence, is_reserved>>
(* Given back, or its lease ended. *)
ComesBack(j) == jobs[j].state = "reserved" /\ To(j, "waiting")
Die(j) == jobs[j].state = "reserved" /\ To(j, "dead")
Kick(j) == jobs[j].state = "dead" /\ To(j, "waiting")

(* The rule's first instant after both now and the occurrence. *)
Next1(after) == CHOOSE t \in after + 1..after + Every : t % Every = 0
Max(a, b) == IF a > b THEN a ELSE b

Tick == now < Last /\ now' = now + 1 /\ UNCHANGED <<jobs, added, occurrence, is_reserved>>
Deliver == occurrence <= now /\ ~is_reserved /\ is_reserved' = TRUE /\ UNCHANGED <<jobs, added, now, occurrence>>
GivesBack == is_reserved /\ is_reserved' = FALSE /\ UNCHANGED <<jobs, added, now, occurrence>>
Ends == /\ is_reserved
        /\ is_reserved' = FALSE
        /\ occurrence' = CASE Fault = "same occurrence" -> occurrence - Every
                           [] Fault = "off its rule" -> now + Every + 1
                           [] OTHER -> Next1(Max(now, occurrence))
        /\ UNCHANGED <<jobs, added, now>>

Next == \/ \E j \in Jobs : \/ \E g \in Groups : Add(j, g)
                          \/ Pop(j) \/ Ack(j) \/ ComesBack(j) \/ Die(j) \/ Kick(j)
        \/ Tick \/ Deliver \/ GivesBack \/ Ends

Spec == Init /\ [][Next]_vars

(* ---- what holds ---- *)

WithinMax == \A g \in Groups : Cardinality(Reserved(g)) <= GroupMax

IsDelivery(j) == jobs[j].state = "waiting" /\ jobs'[j].state = "reserved"

(* In the order of adding, one at a time. *)
InTurn == [][IsFifo => \A j \in Jobs : IsDelivery(j) =>
                \A k \in Live(jobs[j].group) \ {j} : jobs[k].state = "waiting" /\ jobs[k].seq > jobs[j].seq]_vars

(* Later and later instants of the rule. *)
OccurrencesGrow == [][occurrence' # occurrence => occurrence' > occurrence /\ occurrence' % Every = 0]_vars
=============================================================================
