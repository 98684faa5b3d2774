package classify

import (
	"errors"
	"testing"

	"github.com/seed1158cd35/weir/outcome"
)

// A request that net/http cannot send again without its body was not processed.
func TestABodyThatIsGoneWasNotProcessed(t *testing.T) {
	o := Error(t.Context(), errors.New("net/http: cannot rewind body after connection loss"))
	if o.Class != outcome.Failed || !o.Undone {
		t.Errorf("got %+v, want a failure that is undone", o)
	}
}
