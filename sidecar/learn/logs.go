package learn

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Read counts the contents of logs.
type Read struct {
	Lines     int64
	Attempts  int64
	Strange   int64 // lines from other programs, or with impossible values
	Long      int64 // Strange lines that are longer than weir's lines
	Dropped   int64 // lines that weir dropped for lack of space: attempts are missing
	Throttles int64 // lines about throttles, which weir writes even without log_attempts
	Backward  int64 // number of times that the clock was set back
}

// Limits of a line.
const (
	longestLine = 64 << 10
	longestTook = 24 * time.Hour
	mostTokens  = 1 << 40
	mostName    = 128
	// setBack is how much earlier than the previous line a line must be to show that the clock was set back.
	setBack = 2 * time.Second
)

// A line is a line of weir's log, with the fields that are used.
type line struct {
	Time      time.Time        `json:"time"`
	Msg       string           `json:"msg"`
	Upstream  string           `json:"upstream"`
	Operation string           `json:"operation"`
	Class     *outcome.Class   `json:"class"`
	Took      float64          `json:"took"`
	Body      float64          `json:"body"`
	Key       string           `json:"key"`
	Usage     map[string]int64 `json:"usage"`
	Limit     string           `json:"limit"`
	Untold    int64            `json:"suppressed"`
	Lost      int64            `json:"dropped"`
}

// A source is a log that is read line by line.
type source struct {
	in   *bufio.Reader
	last time.Time
	head line
	read *Read
}

// Logs reads weir's logs, merged by time. It accepts logs compressed by gzip.
func (l *Learner) Logs(logs ...io.Reader) (read Read, err error) {
	var all []*source
	for _, r := range logs {
		s := &source{read: &read}
		if s.in, err = plain(r); err != nil {
			return read, err
		}
		if ok, err := s.next(); err != nil {
			return read, err
		} else if ok {
			all = append(all, s)
		}
	}
	for len(all) > 0 {
		first := 0
		for i := range all {
			if all[i].head.Time.Before(all[first].head.Time) {
				first = i
			}
		}
		s := all[first]
		if s.head.Time.Before(s.last.Add(-setBack)) {
			read.Backward++
			l.Break()
		}
		s.last = s.head.Time
		l.line(&s.head, &read)
		ok, err := s.next()
		if err != nil {
			return read, err
		}
		if !ok {
			all = append(all[:first], all[first+1:]...)
		}
	}
	l.flush()
	return read, nil
}

// plain returns a log without its compression.
func plain(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, longestLine)
	if head, _ := in.Peek(2); !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return in, nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("compressed log: %w", err)
	}
	return bufio.NewReaderSize(z, longestLine), nil
}

// next reads the next line with relevant data. ok is false at the end.
func (s *source) next() (ok bool, err error) {
	for {
		text, err := s.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			s.read.Lines, s.read.Strange, s.read.Long = s.read.Lines+1, s.read.Strange+1, s.read.Long+1
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = s.in.ReadSlice('\n')
			}
			text = nil
		}
		if len(bytes.TrimSpace(text)) > 0 {
			s.read.Lines++
			if s.parse(text) {
				return true, nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("after line %d: %w", s.read.Lines, err)
		}
	}
}

// parse reports whether a line has relevant data.
func (s *source) parse(text []byte) bool {
	s.head = line{}
	if json.Unmarshal(text, &s.head) != nil || s.head.Msg == "" || !sane(&s.head) {
		s.read.Strange++
		return false
	}
	return true
}

// Valid years in a log. Times are counted in nanoseconds.
const firstYear, lastYear = 2000, 2200

func sane(l *line) bool {
	y := l.Time.Year()
	used := l.Usage["tokens"]
	return y >= firstYear && y < lastYear && l.Took >= 0 && l.Took <= longestTook.Seconds() && l.Body >= 0 && l.Body <= longestTook.Seconds() && used >= 0 && used <= mostTokens &&
		len(l.Upstream) <= mostName && len(l.Operation) <= mostName && len(l.Key) <= 4*mostName && len(l.Limit) <= mostName &&
		l.Untold >= 0 && l.Untold < mostTokens && l.Lost >= 0 && l.Lost < mostTokens
}

// line records a line.
func (l *Learner) line(n *line, read *Read) {
	switch n.Msg {
	case "attempt", "metered": // older versions write metered
		if n.Class == nil {
			read.Strange++
			return
		}
		read.Attempts++
		took := time.Duration(n.Took * float64(time.Second))
		l.Call(Call{At: n.Time.Add(-took - time.Duration(n.Body*float64(time.Second))), Upstream: n.Upstream, Operation: n.Operation, Keys: n.Key, Class: *n.Class, Tokens: n.Usage["tokens"], Took: took, Metered: n.Msg == "metered"})
	case "throttled", "violation":
		read.Throttles++
	case "refused":
		l.Refused(n.Upstream, n.Limit, n.Untold+1)
	case "log lines dropped":
		read.Dropped += max(1, n.Lost)
	}
}
