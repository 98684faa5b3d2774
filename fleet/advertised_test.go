package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A limit whose size the upstream advertises cannot be shared. Making or changing such a registry fails. So the
// first response of the upstream always finds a limiter that accepts its advertised limit.
func TestALimitThatTheUpstreamTellsIsNotShared(t *testing.T) {
	g := New(NewMemory(nil), Options{}).Group("up")
	l := limit.Limit{Name: "requests", Rate: bucket.Rate{Amount: 100, Per: time.Second}}
	r, err := limit.NewShared(0, l, g)
	if err != nil {
		t.Fatal(err)
	}
	l.Advertised = "requests"
	for name, err := range map[string]error{
		"NewShared":      second(limit.NewShared(0, l, g)),
		"NewSharedEmpty": second(limit.NewSharedEmpty(0, l, g)),
		"Set":            r.Set(0, l),
	} {
		if err == nil || !strings.Contains(err.Error(), `limit requests: advertised "requests"`) || !strings.Contains(err.Error(), "NewRegistry") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r.Limit().Advertised != "" {
		t.Error("the registry goes by what it has refused")
	}
}

func second[T any](_ T, err error) error { return err }
