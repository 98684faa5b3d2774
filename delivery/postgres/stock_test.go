package postgres_test

import (
	"errors"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/postgres"
)

// bounded returns a store of a schema with a limit of four deliveries, and two per tenant.
func bounded(t *testing.T, where string) *postgres.Store {
	t.Helper()
	return open(t, postgres.Options{URL: where, MaxStored: 4})
}

// hasRoom accepts requests until one is refused, and returns how many were stored.
func hasRoom(t *testing.T, s *postgres.Store, tenant string) (n int) {
	t.Helper()
	for ; n < 10; n++ {
		r := request("x")
		r.Tenant = tenant
		if _, _, err := s.Accept(t.Context(), r); errors.Is(err, delivery.ErrFull) || errors.Is(err, delivery.ErrShare) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("nothing bounds what is stored")
	return 0
}

func TestProcessesShareOneBound(t *testing.T) {
	where := place(t, server)
	one, other := bounded(t, where), bounded(t, where)
	if n := hasRoom(t, one, "mallory"); n != 2 {
		t.Errorf("a tenant stored %d, want 2", n)
	}
	if n := hasRoom(t, other, "mallory"); n != 0 {
		t.Errorf("the tenant stored %d more at another process, want 0", n)
	}
	if n := hasRoom(t, other, ""); n != 2 {
		t.Errorf("others stored %d, want 2", n)
	}
	if n := hasRoom(t, one, ""); n != 0 {
		t.Errorf("others stored %d more at the first process, want 0", n)
	}
	for _, f := range []delivery.Filter{{Tenant: "mallory"}, {Status: delivery.Failed}} {
		if n, err := one.Drop(t.Context(), f, 10); err != nil || n != 2 {
			t.Fatal(n, err)
		}
	}
	if _, err := one.Sweep(t.Context(), nil); err != nil { // which sums the differences
		t.Fatal(err)
	}
	if n := hasRoom(t, other, "mallory"); n != 2 {
		t.Errorf("after its dead letters were deleted the tenant stored %d, want 2", n)
	}
}

// The deliveries in an upgraded database count. store init recounts after rows were deleted manually.
func TestInitCountsWhatIsStored(t *testing.T) {
	where := place(t, server)
	if n := hasRoom(t, bounded(t, where), ""); n != 4 {
		t.Fatal(n)
	}
	sql(t, where, "DROP TABLE weir_stock", "UPDATE weir_schema SET version = 3")
	s := bounded(t, where)
	if n := hasRoom(t, s, ""); n != 0 {
		t.Errorf("after an upgrade %d more were stored, want 0", n)
	}
	sql(t, where, "DELETE FROM weir_request WHERE seq = 1", "DELETE FROM weir_delivery WHERE seq = 1")
	if n := hasRoom(t, s, ""); n != 0 {
		t.Fatal(n)
	}
	if made, err := s.Init(t.Context()); made || err != nil {
		t.Fatal(made, err)
	}
	if n := hasRoom(t, s, ""); n != 1 {
		t.Errorf("after a delivery was deleted by hand %d were stored, want 1", n)
	}
}
