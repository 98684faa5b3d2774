package reading

import "strings"

// A field is the meaning of a value in an answer, independent of the family's name for it.
type field uint8

const (
	none field = iota

	// Content.
	text     // text of the answer
	thought  // reasoning before the answer
	tool     // arguments of a tool call
	media    // audio or images
	refusal  // the model refuses to answer
	rich     // content that plain text cannot represent
	delta    // one of the above, depending on the event's kind
	partText // text or reasoning, depending on its neighbors
	partThought
	partEnd

	// Kinds and positions.
	kind      // of an event or an answer
	blockKind // of a block in the answer
	blockEnd
	index    // of one of several answers
	sequence // number of an event

	// End of the answer.
	finish
	status     // status of a Response
	incomplete // why a Response ended early
	blocked    // why the prompt was not answered

	// Usage in tokens.
	input        // input without cached tokens
	inputAll     // input with cached tokens
	inputMore    // in addition to the input
	output       // output, without reasoning if that is reported separately
	outputMore   // in addition to the output
	total        // inputAll plus the entire output
	cacheRead    // in addition to the input
	cacheWrite   // in addition to the input
	cacheHour    // part of cacheWrite, cached for an hour
	cacheReadOf  // part of inputAll
	cacheWriteOf // part of inputAll
	meteredInput // these four as counted by Bedrock
	meteredOutput
	meteredRead
	meteredWrite

	// Errors.
	errCode
	errType
	errStatus
	errMessage
	errRetry
	errQuota
	looseCode // an error only for an error kind or status
	looseMessage
	looseType

	tier  // the service tier that served the call
	speed // fast mode, which has a price
	geo   // location that served the call, which may have a price

	writeTTL   // how long a part of cacheWrite is kept
	writeOfTTL // that part
	writeEnd

	model
	id
	choiceEnd
	encoded // base64-encoded answer in Bedrock's chunk
)

// A node is a place in a JSON text, identified by its keys. Arrays are transparent: their elements have the array's
// place.
type node struct {
	names []string
	kids  []*node
	leaf  field // meaning of a string, number or boolean at this place
	end   field // reported at the end of an object at this place
}

func (n *node) kid(key []byte) *node {
	if n == nil {
		return nil
	}
	for i, name := range n.names {
		if name == string(key) {
			return n.kids[i]
		}
	}
	return nil
}

// tree builds a tree from paths such as "choices.delta.content" and their meanings. A path that ends in {} stands for
// the end of an object.
func tree(tables ...map[string]field) *node {
	root := new(node)
	for _, t := range tables {
		for path, f := range t {
			root.add(path, f)
		}
	}
	return root
}

func (n *node) add(path string, f field) {
	path, end := strings.CutSuffix(path, "{}")
	for name := range strings.SplitSeq(path, ".") {
		n = n.grow(name)
	}
	if end {
		n.end = f
	} else {
		n.leaf = f
	}
}

func (n *node) grow(name string) *node {
	if kid := n.kid([]byte(name)); kid != nil {
		return kid
	}
	kid := new(node)
	n.names, n.kids = append(n.names, name), append(n.kids, kid)
	return kid
}
