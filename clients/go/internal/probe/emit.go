package main

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

type fields = map[string]any

var (
	writing sync.Mutex
	runs    = map[string]int{}
)

func emit(event string, more fields) {
	out := fields{"event": event}
	for name, value := range more {
		out[name] = value
	}
	line, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	writing.Lock()
	defer writing.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n'))
}

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
