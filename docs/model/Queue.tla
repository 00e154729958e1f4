------------------------------- MODULE Queue -------------------------------
(* One queue of dq, its master and a replica, workers that hang and die.       *)
(* What the module promises is at the end. Time is a number that everybody    *)
(* sees; what is lost is lost by death, by lag, or by leases that end.        *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS Jobs, Workers,
          Last,         \* the last instant that is looked at
          Lease,        \* how long a delivery is its worker's
          Backoff,      \* how long a job waits that was given back
          Attempts,     \* deliveries before a job is dead
          Failovers,    \* how often the master may die
          Lag,          \* changes that its replica may not have yet
          Fault         \* "none", or what the checker has to notice

VARIABLES now,
          master,       \* job -> what the master knows of it
          wire,         \* changes on their way to the replica, oldest first
          replica,
          minted,       \* the last token that the master has drawn
          minted_at,    \* and when
          hands,        \* worker -> what it was handed, or Nothing
          epoch,        \* how many masters there were before this one
          confirmed,    \* jobs that were added, and are at the replica too
          finished      \* jobs that somebody acknowledged or deleted

vars == <<now, master, wire, replica, minted, minted_at, hands, epoch, confirmed, finished>>

(* Which job or worker it is makes no difference: the checker looks at one of each kind. *)
Alike == Permutations(Jobs) \cup Permutations(Workers)

Nothing == [job |-> "nothing"]
Unknown == [state |-> "none", due |-> 0, attempts |-> 0, token |-> 0, highest |-> 0, deadline |-> 0]
Max(a, b) == IF a > b THEN a ELSE b

(* Drawn from the clock: a new master's are larger than those of the old one,  *)
(* also those that it never heard of.                                         *)
Drawn == Max(minted, 100 * now) + 1

Init == /\ now = 0
        /\ master = [j \in Jobs |-> Unknown]
        /\ wire = <<>>
        /\ replica = master
        /\ minted = 0
        /\ minted_at = 0
        /\ hands = [w \in Workers |-> Nothing]
        /\ epoch = 0
        /\ confirmed = {}
        /\ finished = {}

(* Every change goes to the replica, as it is and in its order. *)
Change(j, job) == /\ Len(wire) < Lag
                  /\ master' = [master EXCEPT ![j] = job]
                  /\ wire' = Append(wire, master')

LetGo(w) == hands' = [hands EXCEPT ![w] = Nothing]

(* ---- what happens ---- *)

Tick == /\ now < Last
        /\ now' = now + 1
        /\ UNCHANGED <<master, wire, replica, minted, minted_at, hands, epoch, confirmed, finished>>

Add(j, due) == /\ master[j].state = "none"
               /\ j \notin finished
               /\ Change(j, [Unknown EXCEPT !.state = "waiting", !.due = due])
               /\ UNCHANGED <<now, replica, minted, minted_at, hands, epoch, confirmed, finished>>

IsReady(j) == \/ master[j].state = "waiting" /\ master[j].due <= now
              \/ Fault = "early" /\ master[j].state = "waiting"
              \/ Fault = "two leases" /\ master[j].state = "reserved"

Pop(w, j) ==
    LET job == master[j]
        token == IF Fault = "token" THEN job.attempts + 1 ELSE Drawn
    IN  /\ hands[w] = Nothing
        /\ IsReady(j)
        /\ \A k \in Jobs : IsReady(k) => master[k].due >= job.due
        /\ Change(j, [job EXCEPT !.state = "reserved", !.attempts = @ + 1, !.token = token,
                                 !.highest = token, !.deadline = now + Lease])
        /\ minted' = token
        /\ minted_at' = now
        /\ hands' = [hands EXCEPT ![w] = [job |-> j, token |-> token, deadline |-> now + Lease, epoch |-> epoch]]
        /\ UNCHANGED <<now, replica, epoch, confirmed, finished>>

(* Its token stays good until somebody else gets the job: a late answer counts. *)
LeaseEnds(j) ==
    LET job == master[j]
    IN  /\ job.state = "reserved"
        /\ job.deadline <= now
        /\ Change(j, [job EXCEPT !.state = CASE Fault = "lost" -> "none"
                                           [] job.attempts >= Attempts -> "dead"
                                           [] OTHER -> "waiting",
                                 !.due = job.deadline])
        /\ UNCHANGED <<now, replica, minted, minted_at, hands, epoch, confirmed, finished>>

IsCurrent(w) == \/ master[hands[w].job].token = hands[w].token
                \/ Fault = "stale ack"

Ack(w) ==
    /\ hands[w] # Nothing
    /\ IF IsCurrent(w) /\ master[hands[w].job].state # "none"
       THEN /\ Change(hands[w].job, Unknown)
            /\ finished' = finished \cup {hands[w].job}
       ELSE UNCHANGED <<master, wire, finished>>
    /\ LetGo(w)
    /\ UNCHANGED <<now, replica, minted, minted_at, epoch, confirmed>>

Nack(w) ==
    /\ hands[w] # Nothing
    /\ LET job == master[hands[w].job]
       IN  IF job.token = hands[w].token /\ job.state = "reserved"
           THEN Change(hands[w].job, [job EXCEPT !.state = IF job.attempts >= Attempts THEN "dead" ELSE "waiting",
                                                 !.due = now + Backoff, !.token = 0])
           ELSE UNCHANGED <<master, wire>>
    /\ LetGo(w)
    /\ UNCHANGED <<now, replica, minted, minted_at, epoch, confirmed, finished>>

Touch(w) ==
    /\ hands[w] # Nothing
    /\ hands[w].deadline # now + Lease
    /\ LET job == master[hands[w].job]
       IN  /\ job.token = hands[w].token
           /\ job.state = "reserved"
           /\ Change(hands[w].job, [job EXCEPT !.deadline = now + Lease])
    /\ hands' = [hands EXCEPT ![w].deadline = now + Lease]
    /\ UNCHANGED <<now, replica, minted, minted_at, epoch, confirmed, finished>>

(* A dead job again, as if it were new. *)
Kick(j) == /\ master[j].state = "dead"
           /\ Change(j, [master[j] EXCEPT !.state = "waiting", !.due = now, !.attempts = 0, !.token = 0])
           /\ UNCHANGED <<now, replica, minted, minted_at, hands, epoch, confirmed, finished>>

WorkerDies(w) == /\ hands[w] # Nothing
                 /\ LetGo(w)
                 /\ UNCHANGED <<now, master, wire, replica, minted, minted_at, epoch, confirmed, finished>>

Replicate == /\ wire # <<>>
             /\ replica' = Head(wire)
             /\ wire' = Tail(wire)
             /\ confirmed' = confirmed \cup {j \in Jobs : replica'[j].state # "none"}
             /\ UNCHANGED <<now, master, minted, minted_at, hands, epoch, finished>>

(* To notice that a master is dead takes longer than a millisecond, so no two  *)
(* of them draw tokens in the same. Workers go on with what they were handed.  *)
Failover == /\ epoch < Failovers
            /\ (now > minted_at \/ minted = 0)
            /\ epoch' = epoch + 1
            /\ master' = replica
            /\ wire' = <<>>
            /\ minted' = CHOOSE t \in {replica[j].highest : j \in Jobs} :
                             \A j \in Jobs : replica[j].highest <= t
            /\ finished' = {j \in finished : replica[j].state = "none"}
            /\ UNCHANGED <<now, replica, minted_at, hands, confirmed>>

Next == \/ Tick \/ Replicate \/ Failover
        \/ \E j \in Jobs : LeaseEnds(j) \/ Kick(j) \/ \E due \in now..Last : Add(j, due)
        \/ \E w \in Workers : Ack(w) \/ Nack(w) \/ Touch(w) \/ WorkerDies(w) \/ \E j \in Jobs : Pop(w, j)

Spec == Init /\ [][Next]_vars

(* ---- what holds: the rules by which crash tests judge, under the same names ---- *)

IsDelivery(j) == /\ epoch' = epoch
                 /\ master'[j].state = "reserved"
                 /\ master'[j].highest # master[j].highest

(* Early: nobody is handed a job before its due. *)
NeverEarly == [][\A j \in Jobs : IsDelivery(j) => master[j].due <= now]_vars

(* Double: one master never has two live leases on a job. *)
OneLease == \A v, w \in Workers :
    /\ v # w
    /\ hands[v] # Nothing
    /\ hands[w] # Nothing
    => ~ /\ hands[v].job = hands[w].job
         /\ hands[v].epoch = epoch
         /\ hands[w].epoch = epoch
         /\ hands[v].deadline > now
         /\ hands[w].deadline > now

(* Tokens only grow. *)
TokensGrow == [][\A j \in Jobs : IsDelivery(j) => master'[j].highest > master[j].highest /\ master'[j].highest > minted]_vars

(* Attempts count deliveries, and do not jump. *)
AttemptsCount == [][\A j \in Jobs : IsDelivery(j) => master'[j].attempts = master[j].attempts + 1]_vars
AttemptsEnd == \A j \in Jobs : master[j].attempts <= Attempts

(* Stale: while a job is another worker's, an answer with an old token changes nothing. *)
StaleNeverActs ==
    [][\A j \in Jobs : /\ epoch' = epoch
                       /\ master[j].state = "reserved"
                       /\ master[j].deadline > now
                       /\ master'[j].state # "reserved"
       => \E w \in Workers : /\ hands[w] # Nothing
                             /\ hands[w].job = j
                             /\ hands[w].token = master[j].token
                             /\ hands'[w] = Nothing]_vars

(* Lost: what the replica has of a job's adding survives every failover, until *)
(* somebody acknowledges the job.                                             *)
NothingLost == \A j \in confirmed : master[j].state = "none" => j \in finished
=============================================================================
