"""Tests of the scripts in deploy/, with paths that a shell would split or take for options, and with a wrong clock.

ANIMAL_STORE_BINARY names the program.
"""

import os
import shutil
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness.tool import REPOSITORY, service_program

BACKUP = REPOSITORY / "deploy/backup/animal-store-backup"
REHEARSE = REPOSITORY / "deploy/backup/animal-store-rehearse-restore"
CREATE_SECRETS = REPOSITORY / "deploy/compose/create-secrets"
NAMES = (
    "plain", "with  spaces", "it's \"quoted\" $HOME `id` \\n", "-rf", "-", "*", "line\nbreak", "line break\n",
    "two\npets: 7", "a?b%41",
)
PET = '{"name":"Rex","categoryId":1}\n'
# `date` of another day: $OFFSET seconds later.
DATE = """#!/bin/sh
exec /bin/date --date=@$(($(/bin/date +%s) + OFFSET)) "$@"
"""
# `sqlite3` whose check of a backup is preceded by $BEFORE_CHECK.
SQLITE3 = """#!/bin/sh
case $* in *quick_check*) eval "$BEFORE_CHECK" ;; esac
exec /usr/bin/sqlite3 "$@"
"""
DAY = 24 * 3600


class DeployScripts(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        programs = self.folder / "programs"
        programs.mkdir()
        (programs / "animal-store").symlink_to(service_program())
        for name, script in (("date", DATE), ("sqlite3", SQLITE3)):
            (programs / name).write_text(script)
            (programs / name).chmod(0o755)
        self.environment = {"PATH": f"{programs}:{os.environ['PATH']}", "OFFSET": "0", "BEFORE_CHECK": ""}
        self.config = str(self.folder / "store.toml")
        Path(self.config).write_text(f"storage.sqlite.path = '{self.folder}/store.db'\n")
        self.run_in_folder("animal-store", "pets", "import", "-", "--create", "--name", "x", "--config", self.config)

    def run_in_folder(self, *command: object, code: int = 0, **variables: str) -> str:
        """Returns standard output and standard error."""
        run = subprocess.run(
            [*map(str, command)], cwd=self.folder, env=self.environment | variables, input=PET, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0,
        )
        self.assertEqual(code, run.returncode, run.stdout)
        return run.stdout

    def back_up(self, folder: str, keep: int = 2, days: int = 0) -> Path:
        """Returns the new backup."""
        place = self.folder / folder
        before = self.backups(folder)
        self.run_in_folder(BACKUP, folder, keep, "--config", self.config, OFFSET=str(days * DAY))
        [new] = self.backups(folder) - before
        metrics = (place / "animal-store-backup.prom").read_text()
        self.assertIn("\nanimal_store_backup_success 1\n", metrics)
        self.assertIn("\nanimal_store_backup_pets 1\n", metrics)
        self.assertIn(f"\nanimal_store_backup_timestamp_seconds {int(new.stat().st_mtime)}\n", metrics)
        return new

    def backups(self, folder: str) -> set[Path]:
        return {*(self.folder / folder).glob("animal-store-*.db")}

    def rehearse(self, folder: str, days: int = 0) -> str:
        # A name that TOML and the shell would not take as it is.
        scratch = self.folder / "it's \"scratch\"\n"
        scratch.mkdir(exist_ok=True)
        printed = self.run_in_folder(REHEARSE, folder, TMPDIR=str(scratch), OFFSET=str(days * DAY))
        self.assertEqual([], [*scratch.iterdir()])
        return printed

    def test_a_backup_and_its_rehearsal_work_in_a_folder_of_any_name(self) -> None:
        for name in NAMES:
            with self.subTest(name):
                (self.folder / name).mkdir()
                # What a path that is split at its spaces and line breaks would delete.
                foreign = self.folder / name.split()[0]
                if not foreign.exists():
                    foreign.touch()
                days = [self.back_up(name, days=days) for days in range(3)]
                self.assertEqual({*days[1:]}, self.backups(name))
                self.assertTrue(foreign.exists())
                printed = self.rehearse(name, days=3)
                self.assertRegex(printed, r": 1 pets, restored in \d+\.\d s, ready after \d+\.\d s more\n")
                self.assertIn(f"{days[2].relative_to(self.folder)}: 1 pets", printed)
                self.assertNotIn("WARN", printed)

    def test_only_backups_are_counted_and_deleted(self) -> None:
        (self.folder / "x").mkdir()
        others = [
            "animal-store-notADateTatAll.db", "animal-store-20200101T000000Z.db.old",
            "animal-store-2020010\nT000000Z.db", "store.db",
        ]
        for name in others:
            (self.folder / "x" / name).touch()
        (self.folder / "x/animal-store-20200101T000000Z.db").mkdir()
        first = self.back_up("x", keep=1)
        second = self.back_up("x", keep=1, days=1)
        self.assertFalse(first.exists())
        self.assertTrue(second.exists())
        for name in others:
            self.assertTrue((self.folder / "x" / name).exists(), name)

    def test_a_new_backup_is_the_newest_whatever_the_clock_says(self) -> None:
        for days in ((0, -400), (400, 0), (400, 0, -400), (0, 400, 1, -400, 2)):
            with self.subTest(days):
                shutil.rmtree(self.folder / "x", ignore_errors=True)
                (self.folder / "x").mkdir()
                for number, day in enumerate(days):
                    new = self.back_up("x", keep=2, days=day)
                    self.assertEqual(min(2, number + 1), len(self.backups("x")))
                self.assertIn(new.name, self.rehearse("x", days=days[-1]))

    def test_a_backup_from_a_wrong_clock_is_rehearsed_if_there_is_no_other(self) -> None:
        (self.folder / "x").mkdir()
        self.assertIn(self.back_up("x", days=400).name, self.rehearse("x"))

    def test_a_failed_backup_deletes_none_and_reports_the_newest(self) -> None:
        (self.folder / "x").mkdir()
        kept = {self.back_up("x", days=day) for day in (400, 0)}
        self.run_in_folder(BACKUP, "x", 1, "--config", "missing.toml", code=1)
        self.assertEqual(kept, self.backups("x"))
        metrics = (self.folder / "x/animal-store-backup.prom").read_text()
        self.assertIn("_success 0\n", metrics)
        self.assertIn("_pets 1\n", metrics)

    def test_a_backup_that_is_not_checked_has_no_name_of_a_backup(self) -> None:
        (self.folder / "x").mkdir()
        kept = self.back_up("x", keep=1)
        fails, prints, killed, all_killed = "exit 1", "echo damaged", "kill -KILL $$", "kill -KILL 0"
        for before_check, code in ((fails, 1), (prints, 1), (killed, 1), (all_killed, -9)):
            with self.subTest(before_check):
                options = ("--config", self.config)
                self.run_in_folder(BACKUP, "x", 1, *options, code=code, OFFSET=str(DAY), BEFORE_CHECK=before_check)
                self.assertEqual({kept}, self.backups("x"))
                self.assertEqual(code == 1, (self.folder / "x/invalid.db").exists())
                (self.folder / "x/invalid.db").unlink(missing_ok=True)
        [left] = (self.folder / "x").glob(".*")
        os.utime(left, (0, 0))
        new = self.back_up("x", keep=1, days=2)
        self.assertEqual({"animal-store-backup.prom", new.name}, {path.name for path in (self.folder / "x").iterdir()})

    def test_a_failed_backup_does_not_end_the_warning_of_a_smaller_one(self) -> None:
        (self.folder / "x").mkdir()
        large = ("--set", "storage.sqlite.path=large.db")
        for name in ("a", "b", "c"):
            self.run_in_folder("animal-store", "pets", "import", "-", "--create", "--name", name, *large)
        self.run_in_folder(BACKUP, "x", 7, *large, OFFSET=str(-DAY))
        self.back_up("x", keep=7)
        for _ in range(2):
            self.run_in_folder(BACKUP, "x", 7, "--config", "missing.toml", code=1)
            metrics = (self.folder / "x/animal-store-backup.prom").read_text()
            self.assertIn("_success 0\n", metrics)
            self.assertIn("_backup_pets 1\n", metrics)
            self.assertIn("_previous_pets 3\n", metrics)
        self.back_up("x", keep=7, days=1)
        metrics = (self.folder / "x/animal-store-backup.prom").read_text()
        self.assertIn("_previous_pets 1\n", metrics)

    def test_a_number_of_backups_that_is_none_is_refused(self) -> None:
        for keep in ("", "0", "-1", "+2", "07", "two", "2 3", "2\n"):
            self.assertIn("usage: ", self.run_in_folder(BACKUP, "x", keep, code=2))

    def test_a_folder_without_a_backup_is_named(self) -> None:
        for name in NAMES:
            (self.folder / name).mkdir()
            self.assertIn(f"{name}\n", self.run_in_folder(REHEARSE, name, code=1))

    def test_a_damaged_backup_is_named(self) -> None:
        (self.folder / "x").mkdir()
        damaged = self.folder / "x/animal-store-20200101T000000Z.db"
        damaged.write_text("no database")
        self.assertIn(f"x/{damaged.name} cannot be read\n", self.run_in_folder(REHEARSE, "x", code=1))

    def test_secrets_are_created_in_a_folder_of_any_name(self) -> None:
        for name in (*NAMES, "with a slash/"):
            with self.subTest(name):
                self.assertIn(f"{name.rstrip('/')}.", self.run_in_folder(CREATE_SECRETS, name))
                self.assertEqual(0o700, stat.S_IMODE((self.folder / name).stat().st_mode))
                self.assertEqual(9, len([*(self.folder / name).iterdir()]))
                self.assertIn("nothing was changed", self.run_in_folder(CREATE_SECRETS, name, code=1))

    def test_secrets_are_created_beside_a_script_in_a_folder_of_any_name(self) -> None:
        for name in NAMES:
            with self.subTest(name):
                (self.folder / name).mkdir()
                script = self.folder / name / CREATE_SECRETS.name
                shutil.copy(CREATE_SECRETS, script)
                self.run_in_folder(script)
                self.assertTrue((self.folder / name / "secrets/redis_url").exists())


if __name__ == "__main__":
    unittest.main()
