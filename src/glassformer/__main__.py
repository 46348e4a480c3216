"""`python -m glassformer` is the command `glassformer`."""

import sys

from glassformer.cli import main

sys.exit(main())
