package dq

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	"github.com/redis-dq/redis-dq/clients/go/internal/resp"
)

// extras are the options of each pop; the reply has their fields in this order.
var extras = []string{"WITHDUE", "WITHRESULTS", "WITHSTEPS", "WITHTERMS"}

const rowSize = 9

// row is a delivery, as DQ.POP and DQ.BPOP answer it with the extras.
type row struct {
	id            string
	payload       []byte
	token         string
	attempt       int
	deadline, due time.Time
	results       []ending
	steps         map[string][]byte
	terms         terms
}

func rowsOf(rows []any) []row {
	found := make([]row, 0, len(rows))
	for _, each := range rows {
		r := resp.List(each)
		if len(r) < rowSize {
			continue
		}
		found = append(found, row{
			resp.Text(r[0]), resp.Bytes(r[1]), resp.Text(r[2]), int(resp.Int(r[3])), resp.Time(r[4]), resp.Time(r[5]),
			endingsOf(r[6]), stepsOf(r[7]), termsOf(r[8]),
		})
	}
	return found
}

// unknown is how many earlier deliveries went to workers that did not know the job's kind: after a KICK, no more than
// there were.
func (r *row) unknown() int {
	said, has := r.steps[unknownStep]
	if !has { // of most jobs: an error costs more than all else here
		return 0
	}
	count, err := strconv.ParseUint(string(said), 10, 31)
	if err != nil {
		return 0
	}
	return min(int(count), r.attempt-1)
}

// ending is how a job ended that others wait for.
type ending struct {
	id      string
	outcome Outcome
	value   []byte // nil: none
}

func endingsOf(value any) []ending {
	rows := resp.List(value)
	if len(rows) == 0 {
		return nil
	}
	found := make([]ending, 0, len(rows))
	for _, each := range rows {
		if r := resp.List(each); len(r) >= 3 {
			found = append(found, ending{resp.Text(r[0]), Outcome(resp.Text(r[1])), resp.Value(r[2])})
		}
	}
	return found
}

func stepsOf(value any) map[string][]byte {
	if list, isList := value.([]any); isList && len(list) == 0 { // most jobs have none
		return nil
	}
	fields := resp.Map(value)
	if len(fields) == 0 {
		return nil
	}
	steps := make(map[string][]byte, len(fields))
	for name, each := range fields {
		steps[name] = resp.Bytes(each)
	}
	return steps
}

func termsOf(value any) terms {
	row := resp.List(value)
	if len(row) < 3 {
		return terms{ttr: serverTTR}
	}
	found := terms{ttr: resp.Duration(row[0]), maxAttempts: int(resp.Int(row[1]))}
	if row[2] != nil {
		wait := resp.Duration(row[2])
		found.ladder = &wait
	}
	return found
}

// --- Endings, as a step keeps them: [[id, outcome, base64 or null], ...], the same in all languages

func packEndings(all []ending) []byte {
	rows := make([][3]*string, len(all))
	for at, each := range all {
		rows[at] = [3]*string{&each.id, (*string)(&each.outcome), nil}
		if each.outcome == "" { // the waiting job was kicked
			rows[at][1] = nil
		}
		if each.value != nil {
			value := base64.StdEncoding.EncodeToString(each.value)
			rows[at][2] = &value
		}
	}
	packed, _ := json.Marshal(rows) // strings: it cannot fail
	return packed
}

func unpackEndings(packed []byte) ([]ending, error) {
	var rows [][3]*string
	if err := json.Unmarshal(packed, &rows); err != nil {
		return nil, err
	}
	found := make([]ending, len(rows))
	for at, each := range rows {
		if each[0] != nil {
			found[at].id = *each[0]
		}
		if each[1] != nil {
			found[at].outcome = Outcome(*each[1])
		}
		if each[2] != nil {
			value, err := base64.StdEncoding.DecodeString(*each[2])
			if err != nil {
				return nil, err
			}
			found[at].value = append([]byte{}, value...)
		}
	}
	return found, nil
}

// serverTTR is the server's default TTR. A job that has it counts as one that was given none.
const serverTTR = time.Minute

// terms are the job's own terms, or else those of its queue's settings.
type terms struct {
	ttr         time.Duration
	maxAttempts int
	ladder      *time.Duration // the wait after a failure of this delivery; nil: neither the job nor its queue has a backoff
}
