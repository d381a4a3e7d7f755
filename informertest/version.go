package informertest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// versions says how the numbers of the sequence are written: true is as [Options].OpaqueVersions
// wants them. It is the same for all that one store holds.
type versions bool

const (
	opaquePrefix = "v-"
	// Numbers are multiplied by the first to lose their order, and by the second to get it back:
	// one is the inverse of the other among the numbers of 64 bits.
	opaqueFactor  = 0x9e3779b97f4a7c15
	opaqueInverse = 0xf1de83e19937733d
)

func (v versions) format(rv uint64) string { return string(v.append(nil, rv)) }

func (v versions) append(b []byte, rv uint64) []byte {
	if v {
		return strconv.AppendUint(append(b, opaquePrefix...), rv*opaqueFactor, 16)
	}
	return strconv.AppendUint(b, rv, 10)
}

// parse reads a resource version that a client sent; "0" and none at all are its caller's business.
func (v versions) parse(text string) (uint64, error) {
	if v {
		digits, ok := strings.CutPrefix(text, opaquePrefix)
		n, err := strconv.ParseUint(digits, 16, 64)
		if !ok || err != nil || n == 0 {
			return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: this server never gave it", text))
		}
		return n * opaqueInverse, nil
	}
	rv, err := strconv.ParseUint(text, 10, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: not a number", text))
	}
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: more than 64 bits", text))
	}
	return rv, nil
}
