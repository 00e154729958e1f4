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
          finished,     \* jobs that somebody acknowledged
          deleted       \* jobs that somebody deleted or replaced, or whose TTL is over

vars == <<now, master, wire, replica, minted, minted_at, hands, epoch, confirmed, finished, deleted>>

(* Which job or worker it is makes no difference: the checker looks at one of each kind. *)
(* A trace, whose Last is 0, has too many for that.                                       *)
Alike == IF Last = 0 THEN {} ELSE Permutations(Jobs) \cup Permutations(Workers)

Nothing == [job |-> "nothing"]
Unknown == [state |-> "none", due |-> 0, attempts |-> 0, limit |-> 0, token |-> 0, highest |-> 0, deadline |-> 0]
Max(a, b) == IF a > b THEN a ELSE b

(* Drawn from the clock: a new master's are larger than those of the old one,  *)
(* also those that it never heard of.                                         *)
Drawn(j) == IF Fault = "token" THEN master[j].attempts + 1 ELSE Max(minted, 100 * now) + 1

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
        /\ deleted = {}

(* Every change goes to the replica, as it is and in its order. *)
Change(j, job) == /\ Len(wire) < Lag
                  /\ master' = [master EXCEPT ![j] = job]
                  /\ wire' = Append(wire, master')

LetGo(w) == hands' = [hands EXCEPT ![w] = Nothing]

(* ---- what happens: what a client or the clock chooses is an argument ---- *)

Tick(to) == /\ to > now
            /\ now' = to
            /\ UNCHANGED <<master, wire, replica, minted, minted_at, hands, epoch, confirmed, finished, deleted>>

Add(j, due, limit) == /\ master[j].state = "none"
                      /\ j \notin finished \cup deleted
                      /\ Change(j, [Unknown EXCEPT !.state = "waiting", !.due = due, !.limit = limit])
                      /\ UNCHANGED <<now, replica, minted, minted_at, hands, epoch, confirmed, finished, deleted>>

IsReady(j) == \/ master[j].state = "waiting" /\ master[j].due <= now
              \/ Fault = "early" /\ master[j].state = "waiting"
              \/ Fault = "two leases" /\ master[j].state = "reserved"
              \/ Fault = "from nowhere" /\ master[j].state = "none" /\ j \in finished \cup deleted

IsFirst(j) == \A k \in Jobs : IsReady(k) => master[k].due >= master[j].due

(* 0 is without limit. *)
IsExhausted(job) == job.limit # 0 /\ job.attempts >= job.limit

Pop(w, j, token, deadline) ==
    LET job == master[j]
    IN  /\ hands[w] = Nothing
        /\ IsReady(j)
        /\ token > minted \/ Fault = "token"
        /\ deadline > now
        /\ Change(j, [job EXCEPT !.state = "reserved", !.attempts = @ + (IF Fault = "jump" THEN 2 ELSE 1),
                                 !.token = token, !.highest = token, !.deadline = deadline])
        /\ minted' = token
        /\ minted_at' = now
        /\ hands' = [hands EXCEPT ![w] = [job |-> j, token |-> token, deadline |-> deadline, epoch |-> epoch]]
        /\ UNCHANGED <<now, replica, epoch, confirmed, finished, deleted>>

(* With NOACK: it is gone as it is delivered. *)
Take(j) == /\ master[j].state = "waiting"
           /\ master[j].due <= now
           /\ Change(j, Unknown)
           /\ finished' = finished \cup {j}
           /\ UNCHANGED <<now, replica, minted, minted_at, hands, epoch, confirmed, deleted>>

(* Its token stays good until somebody else gets the job: a late answer counts. *)
LeaseEnds(j) ==
    LET job == master[j]
    IN  /\ job.state = "reserved"
        /\ job.deadline <= now
        /\ Change(j, [job EXCEPT !.state = CASE Fault = "lost" -> "none"
                                           [] IsExhausted(job) /\ Fault # "no end" -> "dead"
                                           [] OTHER -> "waiting"])
        /\ UNCHANGED <<now, replica, minted, minted_at, hands, epoch, confirmed, finished, deleted>>

IsCurrent(w) == \/ master[hands[w].job].token = hands[w].token
                \/ Fault = "stale ack"

Ack(w) ==
    /\ hands[w] # Nothing
    /\ IF IsCurrent(w) /\ master[hands[w].job].state # "none"
       THEN /\ Change(hands[w].job, Unknown)
            /\ finished' = finished \cup {hands[w].job}
       ELSE UNCHANGED <<master, wire, finished>>
    /\ LetGo(w)
    /\ UNCHANGED <<now, replica, minted, minted_at, epoch, confirmed, deleted>>

(* The next attempt is due then, or the job is dead; SILENT takes the delivery back. *)
GiveBack(w, due, fails, is_silent) ==
    /\ hands[w] # Nothing
    /\ LET job == master[hands[w].job]
       IN  IF job.token = hands[w].token /\ job.state \in {"reserved", "waiting"}
           THEN Change(hands[w].job,
                       IF fails \/ (IsExhausted(job) /\ ~is_silent)
                       THEN [job EXCEPT !.state = "dead", !.token = 0]
                       ELSE [job EXCEPT !.state = "waiting", !.due = due, !.token = 0,
                                        !.attempts = IF is_silent THEN @ - 1 ELSE @])
           ELSE UNCHANGED <<master, wire>>
    /\ LetGo(w)
    /\ UNCHANGED <<now, replica, minted, minted_at, epoch, confirmed, finished, deleted>>

Touch(w, deadline) ==
    /\ hands[w] # Nothing
    /\ deadline > now
    /\ LET job == master[hands[w].job]
       IN  /\ job.token = hands[w].token
           /\ job.state = "reserved"
           /\ Change(hands[w].job, [job EXCEPT !.deadline = deadline])
    /\ hands' = [hands EXCEPT ![w].deadline = deadline]
    /\ UNCHANGED <<now, replica, minted, minted_at, epoch, confirmed, finished, deleted>>

(* A dead job again, as if it were new. *)
Kick(j, due) == /\ master[j].state = "dead"
                /\ Change(j, [master[j] EXCEPT !.state = "waiting", !.due = due, !.attempts = 0, !.token = 0])
                /\ UNCHANGED <<now, replica, minted, minted_at, hands, epoch, confirmed, finished, deleted>>

Reschedule(j, due) == /\ master[j].state = "waiting"
                      /\ Change(j, [master[j] EXCEPT !.due = due, !.token = 0])
                      /\ UNCHANGED <<now, replica, minted, minted_at, hands, epoch, confirmed, finished, deleted>>

(* Deleted, replaced, or its TTL is over. *)
Delete(j) == /\ master[j].state # "none"
             /\ Change(j, Unknown)
             /\ deleted' = deleted \cup {j}
             /\ UNCHANGED <<now, replica, minted, minted_at, hands, epoch, confirmed, finished>>

WorkerDies(w) == /\ hands[w] # Nothing
                 /\ LetGo(w)
                 /\ UNCHANGED <<now, master, wire, replica, minted, minted_at, epoch, confirmed, finished, deleted>>

Replicate == /\ wire # <<>>
             /\ replica' = Head(wire)
             /\ wire' = Tail(wire)
             /\ confirmed' = confirmed \cup {j \in Jobs : replica'[j].state # "none"}
             /\ UNCHANGED <<now, master, minted, minted_at, hands, epoch, finished, deleted>>

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
            /\ deleted' = {j \in deleted : replica[j].state = "none"}
            /\ UNCHANGED <<now, replica, minted_at, hands, confirmed>>

Next == \/ (now < Last /\ Tick(now + 1))
        \/ Replicate
        \/ Failover
        \/ \E j \in Jobs : LeaseEnds(j) \/ Kick(j, now) \/ \E due \in now..Last : Add(j, due, Attempts)
        \/ \E w \in Workers : \/ Ack(w)
                             \/ (hands[w] # Nothing /\ hands[w].deadline # now + Lease /\ Touch(w, now + Lease))
                             \/ WorkerDies(w)
                             \/ GiveBack(w, now + Backoff, FALSE, FALSE)
                             \/ \E j \in Jobs : (IsFirst(j) /\ Pop(w, j, Drawn(j), now + Lease))

Spec == Init /\ [][Next]_vars

(* Clients may do more, with which a job may be delivered without end at one instant. *)
More == \/ \E j \in Jobs : \/ Take(j)
                          \/ Delete(j)
                          \/ \E due \in now..Last : (master[j].due # due /\ Reschedule(j, due))
        \/ \E w \in Workers, fails, is_silent \in BOOLEAN : GiveBack(w, now + Backoff, fails, is_silent)

SpecWithMore == Init /\ [][Next \/ More]_vars

Bounded == minted <= 100 * now + 2

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
AttemptsEnd == \A j \in Jobs : master[j].limit = 0 \/ master[j].attempts <= master[j].limit

(* Stale: while a job is another worker's, an answer with an old token changes nothing. *)
StaleNeverActs ==
    [][\A j \in Jobs : /\ epoch' = epoch
                       /\ master[j].state = "reserved"
                       /\ master[j].deadline > now
                       /\ master'[j].state # "reserved"
                       /\ j \notin deleted'
       => \E w \in Workers : /\ hands[w] # Nothing
                             /\ hands[w].job = j
                             /\ hands[w].token = master[j].token
                             /\ hands'[w] = Nothing]_vars

(* Lost: what the replica has of a job's adding survives every failover, until *)
(* somebody acknowledges the job.                                             *)
NothingLost == \A j \in confirmed : master[j].state = "none" => j \in finished \cup deleted
(* Nothing is delivered that was never added, or is finished. *)
NothingFromNowhere == [][\A j \in Jobs : IsDelivery(j) => master[j].state # "none"]_vars
=============================================================================
