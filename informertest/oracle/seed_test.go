package oracle_test

import _ "github.com/rvinformer/informer/internal/testkit/rapidseed"
