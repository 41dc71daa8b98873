"""`python -m lessons`: see lessons.cli."""

import sys

from lessons.cli import main

sys.exit(main())
