package weir_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// FuzzDo decodes a call and the results of its attempts: the first four bytes are the retry configuration, and every
// two that follow are one outcome.
func FuzzDo(f *testing.F) {
	f.Add([]byte{3, 0, 10, 1, 3, 0, 3, 0, 1, 0})
	f.Add([]byte{5, 1, 200, 0, 2, 0x85, 2, 0x45, 3, 1})
	f.Add([]byte{0, 5, 0, 1, 4, 0})
	f.Add([]byte{9, 3, 99, 1, 0, 0x20, 2, 0x10, 5, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) < 6 {
			return
		}
		s := scripted(script)
		r := s.run(t)
		if err := s.check(r); err != nil {
			t.Errorf("%v\n%+v", err, s)
		}
	})
}

func scripted(script []byte) scenario {
	base := time.Duration(script[2])*10*ms + ms
	s := scenario{
		conf: retry.Config{Attempts: 1 + int(script[0]%12), Jitter: retry.Jitter(script[1] % 6), Base: base, Cap: max(base, 5*sec)},
		call: weir.Call{Safe: script[3]&1 > 0}, gated: script[3]&2 > 0, seed: uint64(script[3]),
	}
	for i := 4; i+1 < len(script); i += 2 {
		s.outcomes = append(s.outcomes, scriptedOutcome(script[i], script[i+1]))
	}
	return s
}

func scriptedOutcome(class, rest byte) outcome.Outcome {
	o := outcome.Outcome{Class: outcome.Classes[int(class)%len(outcome.Classes)], Undone: rest&1 > 0, Code: "x"}
	if o.Class == outcome.OK {
		return outcome.Outcome{Class: outcome.OK}
	}
	o.Hint.Advice = outcome.Advice(rest >> 1 & 3 % 3)
	o.Hint.Quota = rest&8 > 0
	if o.Hint.Said = rest&16 > 0; o.Hint.Said {
		o.Hint.After = time.Duration(rest>>5) * 13 * sec
	}
	return o
}
