package weir_test

import (
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A program whose fleet is optional hands over a pointer that may be nil: its limits are its own then.
func TestANilFleetIsNone(t *testing.T) {
	var none *fleet.Fleet
	u, err := weir.New("up", weir.Policy{Limits: []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 10, Per: sec, Burst: 10}}}}, weir.Options{Fleet: none})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var p weir.Permit
	if d := u.Try(weir.Call{}, &p); !d.Allowed {
		t.Errorf("a call was refused: %+v", d)
	}
}
