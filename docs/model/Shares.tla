------------------------------- MODULE Shares -------------------------------
(* Whose turn it is among groups with weights, limits and pauses of their own *)
(* and who waits how long for it. Group g has the weight g.                   *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Groups,       \* numbers from 1: their weights
          Most,         \* jobs of a group
          Max,          \* reserved jobs of the first group; the others have no limit
          Fault         \* "none", or what the checker has to notice

VARIABLES ready, reserved,  \* group -> how many
          paused,           \* groups
          order,            \* the groups, the one served longest ago first
          turn, given,      \* the group whose turn it is, 0 for none, and how many it has given in it
          waits             \* group -> deliveries of others since it may be served and is not

vars == <<ready, reserved, paused, order, turn, given, waits>>

None == 0
Sum(s) == LET RECURSIVE of(_)
              of(t) == IF t = {} THEN 0 ELSE LET x == CHOOSE x \in t : TRUE IN x + of(t \ {x})
          IN of(s)

Holds(g) == ready[g] + reserved[g] > 0
MayBeServed(g) == /\ ready[g] > 0
                  /\ g \notin paused \/ Fault = "paused is served"
                  /\ g # 1 \/ reserved[g] < Max

Last(g) == Append(SelectSeq(order, LAMBDA h : h # g), g)
First == order[CHOOSE i \in DOMAIN order : /\ MayBeServed(order[i])
                                           /\ \A k \in 1..i - 1 : ~MayBeServed(order[k])]

GoesOn == /\ turn # None
          /\ given < turn \/ Fault = "no end"
          /\ MayBeServed(turn) \/ Fault = "keeps its turn"
Whose == IF GoesOn THEN turn ELSE First

Init == /\ ready = [g \in Groups |-> 0]
        /\ reserved = [g \in Groups |-> 0]
        /\ paused = {}
        /\ order \in {s \in [1..Cardinality(Groups) -> Groups] : \A i, k \in DOMAIN s : s[i] = s[k] => i = k}
        /\ turn = None
        /\ given = 0
        /\ waits = [g \in Groups |-> 0]

(* `served` is the group that this step serves in turn, or None. *)
Count(served) == waits' = [g \in Groups |->
    IF g = served \/ ~MayBeServed(g) \/ ~MayBeServed(g)' THEN 0
    ELSE IF served = None THEN waits[g] ELSE waits[g] + 1]

(* A group that begins to hold jobs counts as served then, and has no turn. *)
Add(g) == /\ ready[g] + reserved[g] < Most
          /\ ready' = [ready EXCEPT ![g] = @ + 1]
          /\ order' = IF Holds(g) THEN order
                      ELSE IF Fault = "begins in front" THEN <<g>> \o SelectSeq(order, LAMBDA h : h # g)
                      ELSE Last(g)
          /\ UNCHANGED <<reserved, paused, turn, given>>
          /\ Count(None)

Lease(g) == /\ ready' = [ready EXCEPT ![g] = @ - 1]
            /\ reserved' = [reserved EXCEPT ![g] = @ + 1]
            /\ order' = Last(g)
            /\ UNCHANGED paused

Pop == /\ \E g \in Groups : MayBeServed(g)
       /\ MayBeServed(Whose)
       /\ Lease(Whose)
       /\ turn' = Whose
       /\ given' = IF GoesOn THEN given + 1 ELSE 1
       /\ Count(Whose)

(* Out of turn: it neither takes from a turn nor ends it. *)
PopId(g) == /\ MayBeServed(g)
            /\ Lease(g)
            /\ turn' = IF Fault = "out of turn takes it" THEN g ELSE turn
            /\ given' = IF Fault = "out of turn takes it" THEN 0 ELSE given
            /\ waits' = [h \in Groups |-> IF h = g \/ ~MayBeServed(h)' THEN 0 ELSE waits[h]]

(* Its last job ends its turn. *)
Ack(g) == /\ reserved[g] > 0
          /\ reserved' = [reserved EXCEPT ![g] = @ - 1]
          /\ LET ends == turn = g /\ ready[g] = 0 /\ reserved[g] = 1
             IN  /\ turn' = IF ends THEN None ELSE turn
                 /\ given' = IF ends THEN 0 ELSE given
          /\ UNCHANGED <<ready, paused, order>>
          /\ Count(None)

ComesBack(g) == /\ reserved[g] > 0
                /\ reserved' = [reserved EXCEPT ![g] = @ - 1]
                /\ ready' = [ready EXCEPT ![g] = @ + 1]
                /\ UNCHANGED <<paused, order, turn, given>>
                /\ Count(None)

Pause(g) == /\ g \notin paused
            /\ paused' = paused \cup {g}
            /\ UNCHANGED <<ready, reserved, order, turn, given>>
            /\ Count(None)

Resume(g) == /\ g \in paused
             /\ paused' = paused \ {g}
             /\ UNCHANGED <<ready, reserved, order, turn, given>>
             /\ Count(None)

Next == \/ Pop
        \/ \E g \in Groups : Add(g) \/ PopId(g) \/ Ack(g) \/ ComesBack(g) \/ Pause(g) \/ Resume(g)

Spec == Init /\ [][Next]_vars

(* ---- what holds ---- *)

(* No group starves: one that may be served waits for a turn of each other at most. *)
NoneStarves == \A g \in Groups : waits[g] <= Sum(Groups \ {g})

(* A group that is passed over costs the others nothing. *)
NoneHeldUp == (\E g \in Groups : MayBeServed(g)) => ENABLED Pop

TurnsEnd == given <= turn

WithinMax == reserved[1] <= Max

PausedWaits == [][\A g \in paused : ready'[g] >= ready[g]]_vars
=============================================================================
