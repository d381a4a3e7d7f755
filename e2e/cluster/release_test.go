package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAskedVersionIsBuiltAndOthersAreNamed(t *testing.T) {
	const sources = "../servers"
	for minor, file := range map[string]string{"": "go.mod", "1.37": "go.mod", "1.36": "1.36.mod", "1.35": "1.35.mod", "1.34": "1.34.mod"} {
		t.Setenv(Variable, minor)
		r, err := asked(sources)
		require.NoError(t, err)
		require.Equal(t, sources+"/"+file, r.file)
		if minor != "" {
			require.Equal(t, minor, r.minor)
		}
	}
	t.Setenv(Variable, "1.5")
	_, err := Build(t.Context(), t.TempDir())
	require.EqualError(t, err, `KUBERNETES is "1.5", and there are only 1.34, 1.35, 1.36, 1.37`)
}
