-------------------------------- MODULE Fill --------------------------------
(* Clients that wait at one key, some of them for a batch (FILL), in order of *)
(* their coming. The server looks at them when a job becomes ready, when a    *)
(* limit ends, when a client comes, and at the one instant that its timer has. *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Clients,     \* numbers: client c waits for a batch of c jobs, for at most c ms; client 1 without FILL
          Most,        \* ready jobs
          Last,        \* the last instant that is looked at
          Fault        \* "none", or what the checker has to notice

VARIABLES now, ready,
          limited,     \* whether a limit of the queue lets none go
          waiting,     \* clients in order
          from,        \* client -> since when it counts: jobs are ready, and it waits; Never: none is ready
          timer        \* the instant at which the server looks again by itself

vars == <<now, ready, limited, waiting, from, timer>>

Never == Last + 10
Fills(c) == c > 1
Min(s) == CHOOSE x \in s \cup {Never} : \A y \in s \cup {Never} : x <= y
Set(s) == {s[i] : i \in DOMAIN s}

Due(c, jobs, since, at) == ~Fills(c) \/ jobs >= c \/ (since # Never /\ at >= since + c)

(* What one look does: the first client that is due gets its batch, and so on. *)
RECURSIVE Look(_, _, _)
Look(line, jobs, since) ==
    LET due == {i \in DOMAIN line : Due(line[i], jobs, since[line[i]], now')}
        front == IF Fault = "holds up" THEN {i \in due : i = 1} ELSE due
    IN  IF jobs = 0 \/ limited' \/ front = {} THEN <<line, jobs>>
        ELSE LET i == CHOOSE i \in front : \A k \in front : i <= k
                 c == line[i]
                 left == IF jobs > c THEN jobs - c ELSE 0
             IN  Look(SubSeq(line, 1, i - 1) \o SubSeq(line, i + 1, Len(line)), left, since)

(* After a step that leaves `jobs` and `line`, with or without a look. *)
Then(line, jobs, looks) ==
    LET count(c, some) == IF some = 0 THEN (IF Fault = "goes on" THEN from[c] ELSE Never)
                          ELSE IF from[c] = Never THEN now' ELSE from[c]
        since == [c \in Clients |-> IF c \in Set(line) THEN count(c, jobs) ELSE Never]
        after == IF looks THEN Look(line, jobs, since) ELSE <<line, jobs>>
        ends == {since[c] + c : c \in {c \in Set(after[1]) : Fills(c) /\ since[c] # Never}}
        first == IF after[1] = <<>> THEN {} ELSE {since[c] + c : c \in {c \in {after[1][1]} : Fills(c) /\ since[c] # Never}}
    IN  /\ waiting' = after[1]
        /\ ready' = after[2]
        /\ from' = [c \in Clients |-> IF c \notin Set(after[1]) THEN Never
                                      ELSE IF after[2] = 0 /\ Fault # "goes on" THEN Never ELSE since[c]]
        (* While a limit holds, its end is what the server waits for. *)
        /\ timer' = IF after[2] = 0 THEN Never
                    ELSE IF Fault = "the first's alone" THEN Min(first)
                    ELSE Min({t \in ends : t > now' \/ limited'})

Init == /\ now = 0
        /\ ready = 0
        /\ limited = FALSE
        /\ waiting = <<>>
        /\ from = [c \in Clients |-> Never]
        /\ timer = Never

Come(c) == c \notin Set(waiting) /\ UNCHANGED <<now, limited>> /\ Then(Append(waiting, c), ready, TRUE)
(* Its timeout, or unblocked. *)
Go(c) == /\ c \in Set(waiting)
         /\ UNCHANGED <<now, limited>>
         /\ Then(SelectSeq(waiting, LAMBDA x : x # c), ready, FALSE)
Add == ready < Most /\ UNCHANGED <<now, limited>> /\ Then(waiting, ready + 1, TRUE)
(* Deleted, or delivered to a client that does not wait. *)
Taken == ready > 0 /\ UNCHANGED <<now, limited>> /\ Then(waiting, ready - 1, FALSE)
Limit == ~limited /\ limited' = TRUE /\ UNCHANGED now /\ Then(waiting, ready, FALSE)
LimitEnds == limited /\ limited' = FALSE /\ UNCHANGED now /\ Then(waiting, ready, TRUE)
Tick == now < Last /\ now' = now + 1 /\ UNCHANGED limited /\ Then(waiting, ready, timer <= now + 1)

Next == Add \/ Taken \/ Limit \/ LimitEnds \/ Tick \/ \E c \in Clients : Come(c) \/ Go(c)

Spec == Init /\ [][Next]_vars

(* ---- what holds ---- *)

(* Nobody waits who is to be served, however many wait before it for more. *)
NoneHeldUp == ready > 0 /\ ~limited => \A c \in Set(waiting) : ~Due(c, ready, from[c], now)

(* Who waits while none is ready begins to count anew. *)
CountsAnew == ready = 0 => \A c \in Clients : from[c] = Never
=============================================================================
