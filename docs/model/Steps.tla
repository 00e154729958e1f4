------------------------------- MODULE Steps -------------------------------
(* Steps and signals: what a job has got done is kept with it, and a job that  *)
(* waits for a signal is due the moment it comes. One job, one worker at most  *)
(* with a current token, others with old ones. Times are left out: a wait that *)
(* is bounded may end at any moment.                                           *)
EXTENDS Naturals, FiniteSets

CONSTANTS Names,
          Deliveries,   \* how many there are at most
          Fault         \* "none", or what the checker must notice

VARIABLES state,        \* "none", "ready", "waiting" (for a signal), "reserved", "dead"
          token,        \* of the latest delivery
          current,      \* whether it still is
          awaits,       \* the name that the job waits for, or none
          steps,        \* name -> the token that wrote it first, 0: a signal; or nobody
          known,        \* token -> the names that its worker has seen, at its delivery or since
          answered      \* the checker's own record: names whose writing was answered, since the job was added

vars == <<state, token, current, awaits, steps, known, answered>>

None == "none"
Nobody == Deliveries + 1
Written == {n \in Names : steps[n] # Nobody}
Tokens == 1..Deliveries

Init == /\ state = "ready"
        /\ token = 0
        /\ current = FALSE
        /\ awaits = None
        /\ steps = [n \in Names |-> Nobody]
        /\ known = [t \in Tokens |-> {}]
        /\ answered = {}

Pop == /\ state = "ready"
       /\ token < Deliveries
       /\ token' = token + 1
       /\ state' = "reserved"
       /\ current' = TRUE
       /\ known' = [known EXCEPT ![token + 1] = Written]
       /\ UNCHANGED <<awaits, steps, answered>>

(* Any worker may try, with the token that it has. *)
Holds(t) == (t = token /\ current /\ state = "reserved") \/ (Fault = "stale token" /\ t <= token /\ state # "none")

Step(t, n) == /\ Holds(t)
              /\ steps' = [steps EXCEPT ![n] = t]
              /\ known' = [known EXCEPT ![t] = @ \cup {n}]
              /\ answered' = answered \cup {n}
              /\ UNCHANGED <<state, token, current, awaits>>

(* Sets what is not there, and wakes a job that waits for it. *)
Signal(n) == /\ state \in {"ready", "waiting", "reserved"}
             /\ steps[n] = Nobody \/ Fault = "second signal"
             /\ steps' = [steps EXCEPT ![n] = 0]
             /\ answered' = answered \cup {n}
             /\ IF state = "waiting" /\ awaits = n /\ Fault # "no wake"
                THEN state' = "ready" /\ awaits' = None
                ELSE UNCHANGED <<state, awaits>>
             /\ UNCHANGED <<token, current, known>>

(* NACK ... SILENT AWAIT: the worker has looked before, the server looks again. *)
Await(n) == /\ state = "reserved" /\ current
            /\ n \notin known[token]
            /\ current' = FALSE
            /\ IF steps[n] # Nobody /\ Fault # "no second look"
               THEN state' = "ready" /\ awaits' = None
               ELSE state' = "waiting" /\ awaits' = n
            /\ UNCHANGED <<token, steps, known, answered>>

(* Its DELAY has passed, or RESCHEDULE gave it another due. *)
Due == state = "waiting" /\ state' = "ready" /\ awaits' = None /\ UNCHANGED <<token, current, steps, known, answered>>

GiveBack == state = "reserved" /\ state' = "ready" /\ current' = FALSE /\ UNCHANGED <<token, awaits, steps, known, answered>>
(* The token stays current until the next delivery, but it writes no more. *)
LeaseEnds == /\ state = "reserved"
             /\ state' = "ready"
             /\ steps' = IF Fault = "lost with the lease" THEN [n \in Names |-> Nobody] ELSE steps
             /\ UNCHANGED <<token, current, awaits, known, answered>>
Die == state = "reserved" /\ state' = "dead" /\ current' = FALSE /\ UNCHANGED <<token, awaits, steps, known, answered>>
Kick == state = "dead" /\ state' = "ready" /\ UNCHANGED <<token, current, awaits, steps, known, answered>>

Leaves(to) == /\ state' = to
              /\ current' = FALSE
              /\ awaits' = None
              /\ steps' = [n \in Names |-> Nobody]
              /\ answered' = {}
              /\ UNCHANGED <<token, known>>
Ack == state = "reserved" /\ Leaves("none")
Replace == state # "none" /\ Leaves("ready")

Next == \/ Pop \/ Due \/ GiveBack \/ LeaseEnds \/ Die \/ Kick \/ Ack \/ Replace
        \/ \E n \in Names : Signal(n) \/ Await(n) \/ \E t \in Tokens : Step(t, n)

Spec == Init /\ [][Next]_vars

(* ---- what holds ---- *)

(* What was answered is there for the next attempt. *)
StepsKept == answered \subseteq Written

(* A signal is never lost between the look and the wait, nor while it waits. *)
NeverDeaf == state = "waiting" => awaits \notin Written

(* Only the worker that has the job writes a step, and a signal only what is not there. *)
StaleNeverWrites == [][\A n \in Names : steps'[n] # steps[n] /\ steps'[n] # Nobody =>
                           IF steps'[n] = 0 THEN steps[n] = Nobody
                           ELSE steps'[n] = token /\ state = "reserved" /\ current]_vars
=============================================================================
