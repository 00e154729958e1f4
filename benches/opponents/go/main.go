// What the harness has a system do, for systems that are used from Go: as python/program.py.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	ahead        = 2 * time.Second
	batch        = 100
	payloadBytes = 64
	warmUp       = 500 * time.Millisecond
)

type job struct {
	number  int
	payload string
	dueMs   int64 // 0: at once
}

type system interface {
	add(job)
	// addMany is nil where the library has no such thing.
	addMany() func([]job)
	work(handle func(payload string) bool, isReady func())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

func tell(facts map[string]any) {
	line, err := json.Marshal(facts)
	must(err)
	fmt.Println(string(line))
}

func nowS() float64 { return float64(time.Now().UnixNano()) / 1e9 }

func payload(dueMs int64, number, size int) string {
	head := fmt.Sprintf("%d %d ", dueMs, number)
	return head + strings.Repeat("x", max(0, size-len(head)))
}

func far(number, size int) job {
	due := time.Now().Add(time.Hour).UnixMilli() + int64(number)
	return job{number, payload(due, number, size), due}
}

func due(number int) job { return job{number, payload(0, number, payloadBytes), 0} }

func addAll(s system, count int, make func(number int) job) {
	many := s.addMany()
	var jobs []job
	for number := range count {
		if many == nil {
			s.add(make(number))
			continue
		}
		jobs = append(jobs, make(number))
		if len(jobs) == batch || number == count-1 {
			many(jobs)
			jobs = jobs[:0]
		}
	}
}

func add(s system, how string, seconds int) {
	number := 0
	addSome := func() {
		if how == "single" {
			s.add(far(number, payloadBytes))
			number++
			return
		}
		jobs := make([]job, batch)
		for at := range jobs {
			jobs[at] = far(number+at, payloadBytes)
		}
		s.addMany()(jobs)
		number += batch
	}
	addFor := func(long time.Duration) time.Duration {
		began := time.Now()
		for time.Since(began) < long {
			addSome()
		}
		return time.Since(began)
	}
	addFor(warmUp)
	before := number
	took := addFor(time.Duration(seconds) * time.Second)
	tell(map[string]any{"jobs": number - before, "seconds": took.Seconds(), "jobs_in_all": number})
}

func warmUpWith(s system, count int) {
	addAll(s, count, due)
	if count > 0 {
		_, _ = fmt.Scanln()
	}
}

func ready(s system, count, warm int) {
	warmUpWith(s, warm)
	began := nowS()
	addAll(s, count, func(number int) job { return due(warm + number) })
	tell(map[string]any{"began": began})
}

func paced(s system, count, seconds, warm int) {
	warmUpWith(s, warm)
	first := time.Now().Add(100 * time.Millisecond).Truncate(time.Millisecond)
	step := time.Duration(seconds) * time.Second / time.Duration(count)
	for number := range count {
		at := first.Add(time.Duration(number) * step).Truncate(time.Millisecond)
		time.Sleep(time.Until(at))
		dueMs := at.Add(ahead).UnixMilli()
		s.add(job{warm + number, payload(dueMs, warm+number, payloadBytes), dueMs})
	}
	tell(map[string]any{"jobs": count})
}

// seen is what a worker has been given.
type seen struct {
	sync.Mutex
	wanted  int
	warm    int
	numbers map[string]bool
	twice   int
	lateUs  []int64
}

// handle answers whether that was the last job.
func (s *seen) handle(payload string) bool {
	nowUs := time.Now().UnixMicro()
	words := strings.SplitN(payload, " ", 3)
	s.Lock()
	defer s.Unlock()
	if s.numbers[words[1]] {
		s.twice++
		return false
	}
	s.numbers[words[1]] = true
	if dueMs := int64(number(words[0])); dueMs > 0 {
		s.lateUs = append(s.lateUs, nowUs-dueMs*1000)
	}
	if len(s.numbers) == s.warm {
		tell(map[string]any{"warm": true})
	}
	isLast := len(s.numbers) == s.wanted
	if isLast {
		tell(map[string]any{"ended": nowS(), "twice": s.twice, "late_us": append([]int64{}, s.lateUs...)})
	}
	return isLast
}

func open(name string) system {
	address := "127.0.0.1:" + os.Getenv("BENCH_PORT")
	switch name {
	case "dq":
		return newDq(address)
	case "dq_library":
		return newDqLibrary(address)
	case "river":
		return newRiver(address)
	case "asynq":
		return newAsynq(address)
	}
	panic("no system " + name)
}

func main() {
	s, task, words := open(os.Args[1]), os.Args[2], os.Args[3:]
	switch task {
	case "add":
		add(s, words[0], number(words[1]))
	case "fill":
		addAll(s, number(words[0]), func(n int) job { return far(n, number(words[1])) })
		tell(map[string]any{"jobs": number(words[0])})
	case "ready":
		ready(s, number(words[0]), number(words[1]))
	case "paced":
		paced(s, number(words[0]), number(words[1]), number(words[2]))
	case "work":
		seen := &seen{wanted: number(words[0]), warm: number(words[1]), numbers: map[string]bool{}}
		s.work(seen.handle, func() { tell(map[string]any{"ready": true}) })
		select {} // whoever measures looks at it yet
	}
}
