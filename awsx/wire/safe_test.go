package wire_test

import (
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/awsx/wire"
)

// A long poll ends late only if its retry is refused, so it must be repeatable.
func TestLongPollsMayBeRepeated(t *testing.T) {
	for _, name := range []string{"sqs.ReceiveMessage", "states.GetActivityTask", "swf.PollForActivityTask", "swf.PollForDecisionTask"} {
		service, operation, _ := strings.Cut(name, ".")
		if o := wire.Named(service, operation, false); !o.Safe || !o.Polls {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
