package stored

import (
	"errors"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// A Stock is a number of stored deliveries of any status, and the size of their requests in bytes.
type Stock struct{ N, Bytes int64 }

// Plus returns the sum of two stocks.
func (s Stock) Plus(other Stock) Stock { return Stock{s.N + other.N, s.Bytes + other.Bytes} }

// Minus returns the difference of two stocks.
func (s Stock) Minus(other Stock) Stock { return Stock{s.N - other.N, s.Bytes - other.Bytes} }

func (s Stock) exceeds(most Stock) bool { return s.N > most.N || s.Bytes > most.Bytes }

// Near reports whether s is close to the limit: less than a tenth of the limit remains, or less than 10,000 deliveries
// or 1 GiB. Stores that are shared by several processes then read their stock for each request.
func Near(s, most Stock) bool {
	return s.N > most.N-max(most.N/10, 10_000) || s.Bytes > most.Bytes-max(most.Bytes/10, 1<<30)
}

// ErrBound marks an ErrFull or ErrShare that Fits returned. Nothing was changed.
var ErrBound = errors.New("the bound is reached")

// Fits returns an error if one more delivery exceeds the limit, in total or for its tenant. own is the tenant's stock
// with that delivery. all is the stock of all tenants with it. A named tenant may use half of the limit, so that it
// cannot fill the store alone.
func Fits(tenant string, own, all, most Stock) error {
	if half := (Stock{max(1, most.N/2), most.Bytes / 2}); tenant != "" && own.exceeds(half) {
		return fmt.Errorf("%w: %w: with this delivery, the caller would have %d deliveries with %d MiB; at most %d with %d MiB are allowed, half of the total (max_stored, max_size)",
			delivery.ErrShare, ErrBound, own.N, own.Bytes>>20, half.N, half.Bytes>>20)
	}
	if all.exceeds(most) {
		return fmt.Errorf("%w: %w: with this delivery, %d deliveries with %d MiB would be stored; at most %d with %d MiB are allowed (max_stored, max_size)",
			delivery.ErrFull, ErrBound, all.N, all.Bytes>>20, most.N, most.Bytes>>20)
	}
	return nil
}

// SizeOf returns the approximate size of a request in bytes. It includes its encoded header and its body, even if that
// is stored outside the record.
func SizeOf(r *delivery.Request, header string) int64 {
	return int64(len(r.Path)+len(r.Query)+len(header)+len(r.Body)) + r.Large.Size
}
