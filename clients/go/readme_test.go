package dq_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const preamble = `package readme

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"testing"
	"time"

	dq "github.com/redis-dq/redis-dq/clients/go"
	"github.com/redis-dq/redis-dq/clients/go/dqtest"
)

type Order struct{ Number int }

type Shop struct{ queue *dq.Queue }

func NewShop(queue *dq.Queue) *Shop     { return &Shop{queue} }
func (*Shop) StartTrial(string)         {}
func (*Shop) Worker() *dq.Worker        { return nil }

func closeOrder(context.Context, *dq.Job, Order) error { return nil }
func remind(context.Context, *dq.Job) error            { return nil }
func charge(context.Context, Order, string) (string, error) { return "", nil }
func refund(context.Context, string) error             { return nil }
func ship(context.Context, Order, string) error        { return nil }
func use(...any)                                       {}

var (
	ctx   context.Context
	queue *dq.Queue
	err   error
	_     = dqtest.Start
	_     = errors.Is
	_     = sql.ErrNoRows
	_     = os.ErrNotExist
	_     net.Error
	_     = fmt.Sprint
	_     = log.Fatal
	_     testing.TB
	_     time.Duration
)
`

// program makes one of the README's blocks: functions as they are, statements in a function.
func program(text string) string {
	out := preamble
	for n, part := range strings.Split(text, "```go\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		if strings.HasPrefix(block, "package main") { // tests/blocks runs it
			continue
		}
		if strings.HasPrefix(block, "func ") {
			out += block
			continue
		}
		out += fmt.Sprintf("func block%d() (failure error) {\n%s\nuse(err)\n", n, block)
		for _, name := range []string{"handlers", "handler", "config"} {
			if strings.Contains(block, name+" :=") || strings.Contains(block, name+", err :=") {
				out += "use(" + name + ")\n"
			}
		}
		out += "return nil\n}\n"
	}
	return out
}

func TestTheReadmesCodeCompiles(t *testing.T) {
	text := string(must(os.ReadFile("README.md")))
	if blocks := strings.Count(text, "```go\n"); blocks < 4 {
		t.Fatalf("%d blocks", blocks)
	}
	text = strings.ReplaceAll(text, "\n  ", "\n") // those in lists
	here := must(os.Getwd())
	folder := t.TempDir()
	module := "module readme\n\ngo 1.25.0\n\nrequire github.com/redis-dq/redis-dq/clients/go v0.1.0\n\n" +
		"replace github.com/redis-dq/redis-dq/clients/go => " + here + "\n"
	for name, content := range map[string]string{
		"go.mod": module, "readme_test.go": program(text), "go.sum": string(must(os.ReadFile("go.sum"))),
	} {
		must(0, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	command := exec.Command("go", "vet", "-mod=mod", ".")
	command.Dir = folder
	if said, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
