package resp

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
)

func read(text string) (any, error) { return Read(bufio.NewReader(strings.NewReader(text)), 0) }

func expect(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAnswers(t *testing.T) {
	for text, want := range map[string]any{
		"+OK\r\n": []byte("OK"), ":-7\r\n": int64(-7), "$-1\r\n": nil, "*-1\r\n": nil, "$0\r\n\r\n": []byte{},
		"$4\r\na\r\nb\r\n": []byte("a\r\nb"), "-ERR no\r\n": Error("ERR no"),
		"*2\r\n$1\r\nx\r\n*1\r\n:1\r\n": []any{[]byte("x"), []any{int64(1)}},
	} {
		got, err := read(text)
		expect(t, err, nil)
		expect(t, got, want)
	}
}

func TestWhatIsNoAnswer(t *testing.T) {
	for _, text := range []string{"", "\n", "?1\r\n", "$5\r\nab", "*2\r\n:1\r\n", ":x\r\n", "*x\r\n", strings.Repeat("*1\r\n", 100)} {
		if got, err := read(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestCommands(t *testing.T) {
	expect(t, string(Append(nil, []string{"DQ.ACK", "ä\x00"})), "*2\r\n$6\r\nDQ.ACK\r\n$3\r\nä\x00\r\n")
}
