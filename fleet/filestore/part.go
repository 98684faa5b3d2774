package filestore

import (
	"hash/crc64"

	bolt "go.etcd.io/bbolt"
)

// A part is one kind of entry in the file, with a checksum over all its entries. The checksum detects a tree with
// missing or outdated pages, which would otherwise look valid.
type part struct {
	*bolt.Bucket
	sumKey []byte
	sum    uint64
}

func sumKey(name []byte) []byte { return append([]byte("sum "), name...) }

func partOf(b *bolt.Tx, name []byte) (*part, error) {
	p := &part{Bucket: b.Bucket(name), sumKey: sumKey(name)}
	sum, err := number(b.Bucket(bucketMeta), p.sumKey)
	p.sum = uint64(sum)
	return p, err
}

var ecma = crc64.MakeTable(crc64.ECMA)

// digest returns the contribution of an entry to the sum.
func digest(k, v []byte) uint64 {
	if v == nil {
		return 0
	}
	return crc64.Update(crc64.Checksum(k, ecma), ecma, v)
}

func (p *part) put(k, v []byte) error {
	p.sum += digest(k, v) - digest(k, p.Get(k))
	return p.Put(k, v)
}

func (p *part) remove(k []byte) error {
	p.sum -= digest(k, p.Get(k))
	return p.Delete(k)
}

func (p *part) finish(meta *bolt.Bucket) error { return setNumber(meta, p.sumKey, int64(p.sum)) }
